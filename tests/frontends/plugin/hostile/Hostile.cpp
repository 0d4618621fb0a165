// Operators whose code cannot be a part of packages.
#include "tests/frontends/plugin/Descriptions.h"

TCC_OP_EMBED(tcc_test_calls, TCC_CODE_CALLS_X86_64_V3);
TCC_OP_EMBED(tcc_test_state, TCC_CODE_STATE_X86_64_V3);
TCC_OP_EMBED(tcc_test_thread_local, TCC_CODE_THREADLOCAL_X86_64_V3);
TCC_OP_EMBED(tcc_test_constructor, TCC_CODE_CONSTRUCTOR_X86_64_V3);
TCC_OP_EMBED(tcc_test_fixed, TCC_CODE_FIXED_X86_64_V3);
TCC_OP_EMBED(tcc_test_writable, TCC_CODE_WRITABLE_X86_64_V3);

namespace {

const char kText[] = "This is no object, however long it goes on, and on: it "
                     "has more bytes than the header of one.";

struct Case {
  tcc_op_code_v1 code;
  tcc_op_kernel_v1 kernel;

  Case(const char *begin, const char *end, const char *machine = "x86-64-v3")
      : code{sizeof(code), TCC_OP_OBJECT, machine, begin, end},
        kernel(makeKernel("i64 -> i64", "kernel", code)) {}
  Case(const Case &) = delete;
};

const Case kCases[] = {
    {tcc_test_calls, tcc_test_calls_end},
    {tcc_test_state, tcc_test_state_end},
    {tcc_test_thread_local, tcc_test_thread_local_end},
    {tcc_test_constructor, tcc_test_constructor_end},
    {tcc_test_fixed, tcc_test_fixed_end},
    {tcc_test_writable, tcc_test_writable_end},
    {kText, kText + sizeof(kText)},
    {tcc_test_state, tcc_test_state + 200},
    {tcc_test_state, tcc_test_state_end, "x86-64-v9"},
};

const tcc_op_v1 kOperators[] = {
    makeOperator("hostile::calls(Tensor x) -> Tensor", &kCases[0].kernel),
    makeOperator("hostile::state(Tensor x) -> Tensor", &kCases[1].kernel),
    makeOperator("hostile::threads(Tensor x) -> Tensor", &kCases[2].kernel),
    makeOperator("hostile::starts(Tensor x) -> Tensor", &kCases[3].kernel),
    makeOperator("hostile::fixed(Tensor x) -> Tensor", &kCases[4].kernel),
    makeOperator("hostile::writable(Tensor x) -> Tensor", &kCases[5].kernel),
    makeOperator("hostile::text(Tensor x) -> Tensor", &kCases[6].kernel),
    makeOperator("hostile::cut(Tensor x) -> Tensor", &kCases[7].kernel),
    makeOperator("hostile::machine(Tensor x) -> Tensor", &kCases[8].kernel),
};

} // namespace

const tcc_plugin_v1 tcc_plugin = {
    TCC_OP_ABI, sizeof(tcc_plugin_v1),
    "hostile",  "1.0",
    kOperators, sizeof(kOperators) / sizeof(kOperators[0])};
