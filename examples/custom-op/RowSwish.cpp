// An operator with kernels for CPUs and GPUs, and a gradient that is another
// operator:
//
//   tcc model.onnx --plugin ./librow_swish.so
//
// The code for GPUs is bitcode, which is also emulated, or PTX of nvcc.
#include <tcc/op.h>

TCC_OP_EMBED(row_swish_v3, TCC_CODE_ROWSWISHCODE_X86_64_V3);
TCC_OP_EMBED(row_swish_v4, TCC_CODE_ROWSWISHCODE_X86_64_V4);
#ifdef TCC_CODE_ROWSWISHCODE_PTX
TCC_OP_EMBED(row_swish_gpu, TCC_CODE_ROWSWISHCODE_PTX);
#else
TCC_OP_EMBED(row_swish_gpu, TCC_CODE_ROWSWISHCODE_NVVM);
#endif

namespace {

const tcc_op_code_v1 kCpuCodes[] = {
    {sizeof(tcc_op_code_v1), TCC_OP_OBJECT, "x86-64-v3", row_swish_v3,
     row_swish_v3_end},
    {sizeof(tcc_op_code_v1), TCC_OP_OBJECT, "x86-64-v4", row_swish_v4,
     row_swish_v4_end},
};
#ifdef TCC_CODE_ROWSWISHCODE_PTX
constexpr uint32_t kGpuForm = TCC_OP_PTX;
#else
constexpr uint32_t kGpuForm = TCC_OP_NVVM;
#endif
const tcc_op_code_v1 kGpuCodes[] = {
    {sizeof(tcc_op_code_v1), kGpuForm, "sm_80", row_swish_gpu,
     row_swish_gpu_end},
};

tcc_op_kernel_v1 makeKernel(const char *types, const char *symbol,
                            const char *sizes, const char *tasks) {
  tcc_op_kernel_v1 kernel = {};
  kernel.bytes_of_this = sizeof(kernel);
  kernel.target = "cpu";
  kernel.types = types;
  kernel.symbol = symbol;
  kernel.sizes = sizes;
  kernel.tasks = tasks;
  kernel.codes = kCpuCodes;
  kernel.code_count = sizeof(kCpuCodes) / sizeof(kCpuCodes[0]);
  return kernel;
}

// The same for GPUs, where tasks are blocks.
tcc_op_kernel_v1 makeGpuKernel(const char *types, const char *symbol,
                               const char *sizes, const char *blocks) {
  tcc_op_kernel_v1 kernel = makeKernel(types, symbol, sizes, blocks);
  kernel.target = "cuda";
  kernel.threads = 256;
  kernel.codes = kGpuCodes;
  kernel.code_count = sizeof(kGpuCodes) / sizeof(kGpuCodes[0]);
  return kernel;
}

// Each row is a task, which threads share, and a block.
const tcc_op_kernel_v1 kForward[] = {
    makeKernel("f32, f32 -> f32", "row_swish", "x.size(1); beta", "x.size(0)"),
    makeGpuKernel("f32, f32 -> f32", "row_swish", "x.size(1); beta",
                  "x.size(0)"),
};
// Rows are summed: one task; blocks have 32 columns each.
const tcc_op_kernel_v1 kBackward[] = {
    makeKernel("f32, f32, f32 -> f32, f32", "row_swish_gradient",
               "x.size(0); x.size(1); beta", "1"),
    makeGpuKernel("f32, f32, f32 -> f32, f32", "row_swish_gradient",
                  "x.size(0); x.size(1); beta", "(x.size(1) + 31) // 32"),
};

tcc_op_v1 makeForward() {
  tcc_op_v1 op = {};
  op.bytes_of_this = sizeof(op);
  op.since = 1;
  op.schema =
      "mine::row_swish(Tensor x, Tensor scale, float beta=1.0) -> Tensor";
  op.checks = "x.dim() == 2; x.size(1) == scale.size(0)";
  op.shapes = "x.shape";
  // On other targets and for other types, and what the kernel is checked by.
  op.body = "def body(x, scale, beta):\n"
            "  return x * torch.sigmoid(beta * x) * scale\n";
  op.gradient = "def gradient(x, scale, beta, y, dy):\n"
                "  return ops.mine.row_swish_gradient(x, scale, dy, beta)\n";
  op.kernels = kForward;
  op.kernel_count = 2;
  op.flops = "20 * x.numel()";
  op.examples = "x: f32[3, 17], scale: f32[17];"
                "x: f32[64, 5], scale: f32[5], beta: 0.5;"
                "x: f32[0, 4], scale: f32[4]";
  return op;
}

tcc_op_v1 makeBackward() {
  tcc_op_v1 op = {};
  op.bytes_of_this = sizeof(op);
  op.since = 1;
  op.schema = "mine::row_swish_gradient(Tensor x, Tensor scale, Tensor dy, "
              "float beta) -> (Tensor, Tensor)";
  op.shapes = "x.shape; scale.shape";
  op.body = "def body(x, scale, dy, beta):\n"
            "  s = torch.sigmoid(beta * x)\n"
            "  slope = s + beta * x * s * (1 - s)\n"
            "  return dy * scale * slope, torch.sum(dy * x * s, 0)\n";
  op.kernels = kBackward;
  op.kernel_count = 2;
  op.flops = "30 * x.numel()";
  op.examples = "x: f32[3, 17], scale: f32[17], dy: f32[3, 17], beta: 1.5";
  return op;
}

const tcc_op_v1 kOperators[] = {makeForward(), makeBackward()};

} // namespace

const tcc_plugin_v1 tcc_plugin = {
    TCC_OP_ABI,  sizeof(tcc_plugin_v1),
    "row_swish", "1.0",
    kOperators,  sizeof(kOperators) / sizeof(kOperators[0])};
