// What tcc --check-plugin finds: all but the last operator are wrong.
#include "tcc/op.h"

TCC_OP_EMBED(tcc_test_wrong, TCC_CODE_WRONGCODE_X86_64_V3);

namespace {

const tcc_op_code_v1 kCode = {sizeof(tcc_op_code_v1), TCC_OP_OBJECT,
                              "x86-64-v3", tcc_test_wrong, tcc_test_wrong_end};

tcc_op_kernel_v1 makeKernel(const char *symbol, const char *tasks = "1") {
  tcc_op_kernel_v1 kernel = {};
  kernel.bytes_of_this = sizeof(kernel);
  kernel.target = "cpu";
  kernel.types = "f32 -> f32";
  kernel.symbol = symbol;
  kernel.sizes = "x.numel()";
  kernel.tasks = tasks;
  kernel.codes = &kCode;
  kernel.code_count = 1;
  return kernel;
}

const tcc_op_kernel_v1 kKernels[] = {
    makeKernel("thrice"),
    makeKernel("beyond"),
    makeKernel("reads_on"),
    makeKernel("leaves_last"),
    makeKernel("by_range", "x.numel()"),
    makeKernel("twice"),
    makeKernel("twice"),
};

tcc_op_v1 makeOperator(const char *schema, const tcc_op_kernel_v1 *kernel,
                       const char *gradient = nullptr) {
  tcc_op_v1 op = {};
  op.bytes_of_this = sizeof(op);
  op.since = 1;
  op.schema = schema;
  op.shapes = "x.shape";
  op.body = "def body(x):\n  return 2 * x\n";
  op.gradient = gradient;
  op.kernels = kernel;
  op.kernel_count = 1;
  op.examples = "x: f32[1000]";
  return op;
}

const tcc_op_v1 kOperators[] = {
    makeOperator("wrong::thrice(Tensor x) -> Tensor", kKernels),
    makeOperator("wrong::beyond(Tensor x) -> Tensor", kKernels + 1),
    makeOperator("wrong::reads_on(Tensor x) -> Tensor", kKernels + 2),
    makeOperator("wrong::leaves_last(Tensor x) -> Tensor", kKernels + 3),
    makeOperator("wrong::by_range(Tensor x) -> Tensor", kKernels + 4),
    makeOperator("wrong::slope(Tensor x) -> Tensor", kKernels + 5,
                 "def gradient(x, y, dy):\n  return 2.01 * dy\n"),
    makeOperator("wrong::nothing(Tensor x) -> Tensor", kKernels + 6,
                 "def gradient(x, y, dy):\n  return 2 * dy\n"),
};

} // namespace

const tcc_plugin_v1 tcc_plugin = {
    TCC_OP_ABI, sizeof(tcc_plugin_v1),
    "wrong",    "1.0",
    kOperators, sizeof(kOperators) / sizeof(kOperators[0])};
