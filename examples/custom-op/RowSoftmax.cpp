// An operator whose kernels are Triton's (row_softmax.py), with a gradient that
// is another of them. Cubins go into the package as they are; other targets,
// the emulated device among them, have the bodies.
#include <tcc/op.h>

#include "RowSoftmaxLaunch.h"

TCC_OP_EMBED(forward_80, TCC_CODE_ROW_SOFTMAX_SM_80_CUBIN);
TCC_OP_EMBED(forward_90, TCC_CODE_ROW_SOFTMAX_SM_90_CUBIN);
TCC_OP_EMBED(backward_80, TCC_CODE_ROW_SOFTMAX_GRADIENT_SM_80_CUBIN);
TCC_OP_EMBED(backward_90, TCC_CODE_ROW_SOFTMAX_GRADIENT_SM_90_CUBIN);

namespace {

constexpr uint32_t kCodeBytes = sizeof(tcc_op_code_v1);

// What Triton makes for 9.0 uses instructions of that GPU alone.
const tcc_op_code_v1 kForward[] = {
    {kCodeBytes, TCC_OP_CUBIN, "sm_80", forward_80, forward_80_end},
    {kCodeBytes, TCC_OP_CUBIN, "sm_90a", forward_90, forward_90_end},
};
const tcc_op_code_v1 kBackward[] = {
    {kCodeBytes, TCC_OP_CUBIN, "sm_80", backward_80, backward_80_end},
    {kCodeBytes, TCC_OP_CUBIN, "sm_90a", backward_90, backward_90_end},
};

// A block computes a row. The two zeros are Triton's own scratch memory.
tcc_op_kernel_v1 makeKernel(const char *types, const char *symbol,
                            const char *sizes, const char *tasks,
                            uint32_t sharedBytes, const tcc_op_code_v1 *codes) {
  tcc_op_kernel_v1 kernel = {};
  kernel.bytes_of_this = sizeof(kernel);
  kernel.target = "cuda";
  kernel.types = types;
  kernel.symbol = symbol;
  kernel.sizes = sizes;
  kernel.tasks = tasks;
  kernel.threads = ROW_SOFTMAX_THREADS;
  kernel.shared_bytes = sharedBytes;
  kernel.codes = codes;
  kernel.code_count = 2;
  return kernel;
}

const tcc_op_kernel_v1 kKernels[] = {
    makeKernel("f32 -> f32", "row_softmax", "x.size(1); 0; 0", "x.size(0)",
               ROW_SOFTMAX_SHARED, kForward),
    makeKernel("f32, f32 -> f32", "row_softmax_gradient", "y.size(1); 0; 0",
               "y.size(0)", ROW_SOFTMAX_GRADIENT_SHARED, kBackward),
};

tcc_op_v1 makeOperator(const char *schema, const tcc_op_kernel_v1 *kernel,
                       const char *shapes, const char *body) {
  tcc_op_v1 op = {};
  op.bytes_of_this = sizeof(op);
  op.since = 1;
  op.schema = schema;
  op.shapes = shapes;
  op.body = body;
  op.kernels = kernel;
  op.kernel_count = 1;
  return op;
}

tcc_op_v1 makeForward() {
  tcc_op_v1 op =
      makeOperator("mine::row_softmax(Tensor x) -> Tensor", kKernels, "x.shape",
                   "def body(x):\n"
                   "  return torch.softmax(x, 1)\n");
  // The width is Triton's: it is compiled for rows of so many columns at most.
  static_assert(ROW_SOFTMAX_WIDTH == 4096);
  op.checks = "x.dim() == 2; x.size(1) <= 4096";
  op.gradient = "def gradient(x, y, dy):\n"
                "  return ops.mine.row_softmax_gradient(y, dy)\n";
  op.examples = "x: f32[3, 17]; x: f32[2, 4096]; x: f32[0, 4]";
  return op;
}

tcc_op_v1 makeBackward() {
  tcc_op_v1 op =
      makeOperator("mine::row_softmax_gradient(Tensor y, Tensor dy) -> Tensor",
                   kKernels + 1, "y.shape",
                   "def body(y, dy):\n"
                   "  return y * (dy - torch.sum(y * dy, 1, True))\n");
  op.examples = "y: f32[3, 17], dy: f32[3, 17]";
  return op;
}

const tcc_op_v1 kOperators[] = {makeForward(), makeBackward()};

} // namespace

const tcc_plugin_v1 tcc_plugin = {
    TCC_OP_ABI,    sizeof(tcc_plugin_v1),
    "row_softmax", "1.0",
    kOperators,    sizeof(kOperators) / sizeof(kOperators[0])};
