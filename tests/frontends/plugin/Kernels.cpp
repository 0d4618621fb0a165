// An operator with a kernel, no body and no gradient.
#include "tests/frontends/plugin/Descriptions.h"

TCC_OP_EMBED(tcc_test_kernels, TCC_CODE_KERNELCODE_X86_64_V3);

namespace {

const tcc_op_code_v1 kCode = {sizeof(tcc_op_code_v1), TCC_OP_OBJECT,
                              "x86-64-v3", tcc_test_kernels,
                              tcc_test_kernels_end};

const tcc_op_kernel_v1 kKernel = [] {
  tcc_op_kernel_v1 kernel = makeKernel("i64 -> i64", "count_runs", kCode);
  kernel.sizes = "x.size(0)";
  return kernel;
}();

const tcc_op_v1 kOperator = [] {
  tcc_op_v1 op =
      makeOperator("tests::count_runs(Tensor x) -> Tensor", &kKernel);
  op.checks = "x.dim() == 1";
  op.shapes = "[1]";
  op.examples = "x: i64[9]; x: i64[0]";
  return op;
}();

} // namespace

const tcc_plugin_v1 tcc_plugin = {
    TCC_OP_ABI, sizeof(tcc_plugin_v1), "kernels", "1.0", &kOperator, 1};
