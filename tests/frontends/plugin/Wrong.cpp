// What tcc --check-plugin finds: all operators but those of nothing are wrong.
#include "tests/frontends/plugin/Descriptions.h"

TCC_OP_EMBED(tcc_test_wrong, TCC_CODE_WRONGCODE_X86_64_V3);
TCC_OP_EMBED(tcc_test_wrong_gpu, TCC_CODE_WRONGCODE_NVVM);

namespace {

const tcc_op_code_v1 kCode = {sizeof(tcc_op_code_v1), TCC_OP_OBJECT,
                              "x86-64-v3", tcc_test_wrong, tcc_test_wrong_end};

const tcc_op_code_v1 kGpuCode = {sizeof(tcc_op_code_v1), TCC_OP_NVVM, "sm_80",
                                 tcc_test_wrong_gpu, tcc_test_wrong_gpu_end};

tcc_op_kernel_v1 makeWrong(const char *symbol, const char *tasks = "1") {
  tcc_op_kernel_v1 kernel = makeKernel("f32 -> f32", symbol, kCode);
  kernel.sizes = "x.numel()";
  kernel.tasks = tasks;
  return kernel;
}

tcc_op_kernel_v1 makeWrongGpu(const char *symbol) {
  tcc_op_kernel_v1 kernel = makeKernel("f32 -> f32", symbol, kGpuCode);
  kernel.target = "cuda";
  kernel.sizes = "x.numel()";
  kernel.tasks = "(x.numel() + 63) // 64";
  kernel.threads = 64;
  return kernel;
}

const tcc_op_kernel_v1 kGpuKernels[] = {
    makeWrongGpu("thrice"), makeWrongGpu("races"), makeWrongGpu("beyond"),
    makeWrongGpu("twice"),  makeWrongGpu("fast"),  makeWrongGpu("assembly"),
    makeWrongGpu("second"),
};

const tcc_op_kernel_v1 kKernels[] = {
    makeWrong("thrice"),
    makeWrong("beyond"),
    makeWrong("reads_on"),
    makeWrong("leaves_last"),
    makeWrong("by_range", "x.numel()"),
    makeWrong("twice"),
    makeWrong("twice"),
};

tcc_op_v1 makeTwice(const char *schema, const tcc_op_kernel_v1 *kernel,
                    const char *gradient = nullptr) {
  tcc_op_v1 op = makeOperator(schema, kernel);
  op.body = "def body(x):\n  return 2 * x\n";
  op.gradient = gradient;
  op.examples = "x: f32[1000]";
  return op;
}

const tcc_op_v1 kOperators[] = {
    makeTwice("wrong::thrice(Tensor x) -> Tensor", kKernels),
    makeTwice("wrong::beyond(Tensor x) -> Tensor", kKernels + 1),
    makeTwice("wrong::reads_on(Tensor x) -> Tensor", kKernels + 2),
    makeTwice("wrong::leaves_last(Tensor x) -> Tensor", kKernels + 3),
    makeTwice("wrong::by_range(Tensor x) -> Tensor", kKernels + 4),
    makeTwice("wrong::slope(Tensor x) -> Tensor", kKernels + 5,
              "def gradient(x, y, dy):\n  return 2.01 * dy\n"),
    makeTwice("wrong_gpu::thrice(Tensor x) -> Tensor", kGpuKernels),
    makeTwice("wrong_gpu::races(Tensor x) -> Tensor", kGpuKernels + 1),
    makeTwice("wrong_gpu::beyond(Tensor x) -> Tensor", kGpuKernels + 2),
    makeTwice("wrong_gpu::nothing(Tensor x) -> Tensor", kGpuKernels + 3),
    makeOperator("not_emulated::fast(Tensor x) -> Tensor", kGpuKernels + 4),
    makeOperator("not_emulated::assembly(Tensor x) -> Tensor", kGpuKernels + 5),
    makeOperator("not_emulated::second(Tensor x) -> Tensor", kGpuKernels + 6),
    makeTwice("wrong::nothing(Tensor x) -> Tensor", kKernels + 6,
              "def gradient(x, y, dy):\n  return 2 * dy\n"),
};

} // namespace

const tcc_plugin_v1 tcc_plugin = {
    TCC_OP_ABI, sizeof(tcc_plugin_v1),
    "wrong",    "1.0",
    kOperators, sizeof(kOperators) / sizeof(kOperators[0])};
