// Operators whose code for GPUs is PTX or cubins: good ones first.
#include "tests/frontends/plugin/Descriptions.h"

TCC_OP_EMBED(tcc_test_ptx, TCC_CODE_CODE_PTX);
TCC_OP_EMBED(tcc_test_cubin, TCC_CODE_CODE_SM_90_CUBIN);

namespace {

const char kText[] = "This is no code, however long it goes on.";
const char kExact[] = ".version 8.0 .target sm_90a .entry twice(.param .u64 x, "
                      ".param .u64 y, .param .u64 n) { ret; }";
const char kOpen[] = ".version 8.0 .target sm_80 .entry twice( /* open";

constexpr tcc_op_code_v1 makeCode(uint32_t form, const char *machine,
                                  const char *begin, const char *end) {
  return {sizeof(tcc_op_code_v1), form, machine, begin, end};
}

// The end of a string's characters is the zero after them.
constexpr tcc_op_code_v1 makePtx(const char *begin, const char *end,
                                 const char *machine = "sm_80") {
  return makeCode(TCC_OP_PTX, machine, begin, end);
}

const tcc_op_code_v1 kPtx = makePtx(tcc_test_ptx, tcc_test_ptx_end);
const tcc_op_code_v1 kCubin =
    makeCode(TCC_OP_CUBIN, "sm_90", tcc_test_cubin, tcc_test_cubin_end);
const tcc_op_code_v1 kBoth[] = {kPtx, kCubin};
const tcc_op_code_v1 kWrong[] = {
    makePtx(kText, kText + sizeof(kText)),
    makePtx(kExact, kExact + sizeof(kExact), "sm_90"),
    makePtx(kOpen, kOpen + sizeof(kOpen)),
    makePtx(tcc_test_cubin, tcc_test_cubin_end),
    makePtx(tcc_test_ptx, tcc_test_ptx_end, "sm_80a"),
    makeCode(TCC_OP_CUBIN, "sm_90", tcc_test_cubin, tcc_test_cubin + 4000),
    makeCode(TCC_OP_CUBIN, "sm_80", tcc_test_cubin, tcc_test_cubin_end),
    makeCode(TCC_OP_CUBIN, "volta", tcc_test_cubin, tcc_test_cubin_end),
};

tcc_op_kernel_v1 makeGpu(const tcc_op_code_v1 &code,
                         const char *symbol = "twice", size_t codes = 1) {
  tcc_op_kernel_v1 kernel = makeKernel("f32 -> f32", symbol, code);
  kernel.target = "cuda";
  kernel.sizes = "x.numel()";
  kernel.tasks = "(x.numel() + 63) // 64";
  kernel.threads = 64;
  kernel.shared_bytes = 1024;
  kernel.code_count = codes;
  return kernel;
}

tcc_op_kernel_v1 makeSum() {
  tcc_op_kernel_v1 kernel = makeGpu(kPtx);
  kernel.types = "f32, f32 -> f32";
  kernel.sizes = nullptr;
  return kernel;
}

const tcc_op_kernel_v1 kKernels[] = {
    makeGpu(kPtx),
    makeGpu(kCubin),
    makeGpu(kBoth[0], "twice", 2),
    makeSum(),
    makeGpu(kPtx, "once"),
    makeGpu(kPtx, "narrow"),
    makeGpu(kPtx, "block"),
    makeGpu(kPtx, "two"),
    makeGpu(kPtx, "none"),
    makeGpu(kCubin, "once"),
    makeGpu(kCubin, "narrow"),
    makeGpu(kCubin, "two"),
    makeGpu(kPtx, "wide"),
    makeGpu(kCubin, "wide"),
    makeGpu(kPtx, "slim"),
    makeGpu(kCubin, "slim"),
    makeGpu(kWrong[0]),
    makeGpu(kWrong[1]),
    makeGpu(kWrong[2]),
    makeGpu(kWrong[3]),
    makeGpu(kWrong[4]),
    makeGpu(kWrong[5]),
    makeGpu(kWrong[6]),
    makeGpu(kWrong[7]),
};

tcc_op_v1 makeTwice(const char *schema, const tcc_op_kernel_v1 &kernel) {
  tcc_op_v1 op = makeOperator(schema, &kernel);
  op.body = "def body(x):\n  return 2 * x\n";
  op.gradient = "def gradient(x, y, dy):\n  return 2 * dy\n";
  op.examples = "x: f32[100]";
  return op;
}

tcc_op_v1 makeSumOperator() {
  tcc_op_v1 op =
      makeOperator("finished::sum(Tensor x, Tensor y) -> Tensor", &kKernels[3]);
  op.body = "def body(x, y):\n  return x + y\n";
  return op;
}

tcc_op_v1 makeBad(const char *schema, int i) {
  return makeOperator(schema, &kKernels[i]);
}

const tcc_op_v1 kOperators[] = {
    makeTwice("finished::ptx(Tensor x) -> Tensor", kKernels[0]),
    makeTwice("finished::cubin(Tensor x) -> Tensor", kKernels[1]),
    makeTwice("finished::both(Tensor x) -> Tensor", kKernels[2]),
    makeSumOperator(),
    makeBad("hostile::p_name(Tensor x) -> Tensor", 4),
    makeBad("hostile::p_narrow(Tensor x) -> Tensor", 5),
    makeBad("hostile::p_block(Tensor x) -> Tensor", 6),
    makeBad("hostile::p_few(Tensor x) -> Tensor", 7),
    makeBad("hostile::p_none(Tensor x) -> Tensor", 8),
    makeBad("hostile::c_name(Tensor x) -> Tensor", 9),
    makeBad("hostile::c_narrow(Tensor x) -> Tensor", 10),
    makeBad("hostile::c_few(Tensor x) -> Tensor", 11),
    makeBad("hostile::p_wide(Tensor x) -> Tensor", 12),
    makeBad("hostile::c_wide(Tensor x) -> Tensor", 13),
    makeBad("hostile::p_slim(Tensor x) -> Tensor", 14),
    makeBad("hostile::c_slim(Tensor x) -> Tensor", 15),
    makeBad("hostile::p_text(Tensor x) -> Tensor", 16),
    makeBad("hostile::p_exact(Tensor x) -> Tensor", 17),
    makeBad("hostile::p_open(Tensor x) -> Tensor", 18),
    makeBad("hostile::p_bytes(Tensor x) -> Tensor", 19),
    makeBad("hostile::p_machine(Tensor x) -> Tensor", 20),
    makeBad("hostile::c_cut(Tensor x) -> Tensor", 21),
    makeBad("hostile::c_arch(Tensor x) -> Tensor", 22),
    makeBad("hostile::c_machine(Tensor x) -> Tensor", 23),
};

} // namespace

const tcc_plugin_v1 tcc_plugin = {
    TCC_OP_ABI, sizeof(tcc_plugin_v1),
    "finished", "1.0",
    kOperators, sizeof(kOperators) / sizeof(kOperators[0])};
