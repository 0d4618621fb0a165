// Operators whose code for GPUs cannot be a part of packages.
#include "tests/frontends/plugin/Descriptions.h"

TCC_OP_EMBED(tcc_test_calls, TCC_CODE_CALLS_NVVM);
TCC_OP_EMBED(tcc_test_state, TCC_CODE_STATE_NVVM);
TCC_OP_EMBED(tcc_test_shared, TCC_CODE_SHARED_NVVM);
TCC_OP_EMBED(tcc_test_much, TCC_CODE_MUCH_NVVM);
TCC_OP_EMBED(tcc_test_parameters, TCC_CODE_PARAMETERS_NVVM);
TCC_OP_EMBED(tcc_test_recursion, TCC_CODE_RECURSION_NVVM);

namespace {

const char kText[] = "This is no bitcode, however long it goes on.";

struct Case {
  tcc_op_code_v1 code;
  tcc_op_kernel_v1 kernel;

  Case(const char *begin, const char *end, const char *symbol = "kernel",
       const char *machine = "sm_80")
      : code{sizeof(code), TCC_OP_NVVM, machine, begin, end},
        kernel(makeKernel("i64 -> i64", symbol, code)) {
    kernel.target = "cuda";
    kernel.threads = 32;
  }
  Case(const Case &) = delete;
};

const Case kCases[] = {
    {tcc_test_calls, tcc_test_calls_end},
    {tcc_test_state, tcc_test_state_end},
    {tcc_test_shared, tcc_test_shared_end},
    {tcc_test_much, tcc_test_much_end},
    {tcc_test_parameters, tcc_test_parameters_end},
    {tcc_test_parameters, tcc_test_parameters_end, "narrow"},
    {tcc_test_parameters, tcc_test_parameters_end, "function"},
    {tcc_test_recursion, tcc_test_recursion_end},
    {kText, kText + sizeof(kText)},
    {tcc_test_state, tcc_test_state + 200},
    {tcc_test_recursion, tcc_test_recursion_end, "kernel", "sm_70"},
};

const tcc_op_v1 kOperators[] = {
    makeOperator("hostile::calls(Tensor x) -> Tensor", &kCases[0].kernel),
    makeOperator("hostile::state(Tensor x) -> Tensor", &kCases[1].kernel),
    makeOperator("hostile::shared(Tensor x) -> Tensor", &kCases[2].kernel),
    makeOperator("hostile::much(Tensor x) -> Tensor", &kCases[3].kernel),
    makeOperator("hostile::count(Tensor x) -> Tensor", &kCases[4].kernel),
    makeOperator("hostile::narrow(Tensor x) -> Tensor", &kCases[5].kernel),
    makeOperator("hostile::device(Tensor x) -> Tensor", &kCases[6].kernel),
    makeOperator("hostile::recurs(Tensor x) -> Tensor", &kCases[7].kernel),
    makeOperator("hostile::text(Tensor x) -> Tensor", &kCases[8].kernel),
    makeOperator("hostile::cut(Tensor x) -> Tensor", &kCases[9].kernel),
    makeOperator("hostile::machine(Tensor x) -> Tensor", &kCases[10].kernel),
};

} // namespace

const tcc_plugin_v1 tcc_plugin = {
    TCC_OP_ABI, sizeof(tcc_plugin_v1),
    "hostile",  "1.0",
    kOperators, sizeof(kOperators) / sizeof(kOperators[0])};
