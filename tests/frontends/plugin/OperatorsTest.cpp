// What plugins get wrong, and what is said about it.
#include "frontends/plugin/Operator.h"
#include "tests/frontends/plugin/Descriptions.h"
#include "llvm/Support/raw_ostream.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace tcc;
using testing::HasSubstr;

namespace {

constexpr char kSchema[] = "mine::twice(Tensor x, float by=2) -> Tensor";
constexpr char kBody[] = "def body(x, by):\n  return x * by\n";

tcc_op_v1 makeOperator() {
  tcc_op_v1 op = ::makeOperator(kSchema);
  op.shapes = nullptr;
  op.body = kBody;
  return op;
}

tcc_plugin_v1 makePlugin(llvm::ArrayRef<tcc_op_v1> operators) {
  return {TCC_OP_ABI, sizeof(tcc_plugin_v1), "test",
          "1",        operators.data(),      operators.size()};
}

std::string print(const Problems &problems) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  problems.print(stream);
  return text;
}

/// What is said of a plugin with these operators.
std::string load(llvm::ArrayRef<tcc_op_v1> list) {
  plugin::Operators operators;
  Problems problems("model");
  operators.add("p.so", makePlugin(list), problems);
  return print(problems);
}

std::string loadSchema(const char *schema) {
  tcc_op_v1 op = makeOperator();
  op.schema = schema;
  op.body = "def body():\n  return 1\n";
  return load(op);
}

TEST(Operators, FindsTheNewestOfAVersion) {
  tcc_op_v1 ops[] = {makeOperator(), makeOperator()};
  ops[1].since = 3;
  plugin::Operators operators;
  Problems problems;
  operators.add("p.so", makePlugin(ops), problems);
  EXPECT_EQ(print(problems), "");
  EXPECT_EQ(operators.find("mine::twice", 2)->since, 1);
  EXPECT_EQ(operators.find("mine::twice", 3)->since, 3);
  EXPECT_EQ(operators.find("mine::twice")->since, 3);
  EXPECT_EQ(operators.find("mine::twice", 0), nullptr);
  EXPECT_EQ(operators.find("mine::thrice"), nullptr);
  EXPECT_EQ(operators.getPlugins().size(), 1u);
}

TEST(Operators, ReadsSchemasOfTorchLibrary) {
  const char *schemas[] = {
      "mine::a(Tensor x) -> Tensor",
      R"(mine::b(Tensor x, Tensor? y=None, *, int n=-1, int[] k=[], float[] f=[],
                 str kind="a, b", bool flag=True) -> (Tensor, Tensor))",
      "com.mine::c( Tensor x ,float e=1e-05 )->(Tensor y , Tensor z)",
  };
  for (const char *schema : schemas)
    EXPECT_THAT(loadSchema(schema), testing::Not(HasSubstr("schema")))
        << schema;
}

TEST(Operators, RefusesSchemas) {
  std::pair<const char *, const char *> cases[] = {
      {"", "a name is expected"},
      {"twice(Tensor x) -> Tensor", "'::' is expected, found '(Tensor x)"},
      {"mine::twice", "'(' is expected"},
      {"mine::twice(", "Tensor, Tensor?, int, float, bool, str"},
      {"mine::twice(Tensor", "a space behind 'Tensor'"},
      {"mine::twice(Tensor(a!) x) -> Tensor", "a space behind 'Tensor'"},
      {"mine::twice(Tensor[] x) -> Tensor", "a space behind 'Tensor'"},
      {"mine::twice(Scalar x) -> Tensor", "Tensor, Tensor?, int"},
      {"mine::twice(Tensor x", "',' is expected"},
      {"mine::twice(Tensor 2x) -> Tensor", "a name is expected"},
      {"mine::twice(Tensor x, float x) -> Tensor", "another name than 'x'"},
      {"mine::twice(Tensor x, int n=1.5) -> Tensor", "the parameter's type"},
      {"mine::twice(Tensor x, int n=) -> Tensor", "a default is expected"},
      {"mine::twice(Tensor x, str s=\"a) -> Tensor", "the parameter's type"},
      {"mine::twice(Tensor x, int[] s=[1) -> Tensor", "a default is expected"},
      {"mine::twice(Tensor x=None) -> Tensor", "the parameter's type"},
      {"mine::twice(Tensor x)", "'->' is expected"},
      {"mine::twice(Tensor x) -> Tensor[]", "a plain Tensor"},
      {"mine::twice(Tensor x) -> Tensor(a)", "a plain Tensor"},
      {"mine::twice(Tensor x) -> ()", "'Tensor' is expected"},
      {"mine::twice(Tensor x) -> (Tensor", "a name is expected"},
      {"mine::twice(Tensor x) -> Tensor y", "the end is expected"},
      {"aten::relu(Tensor x) -> Tensor", "domain 'aten' is not for plugins"},
      {"ai.onnx::Relu(Tensor x) -> Tensor", "is not for plugins"},
      {"com.microsoft::Gelu(Tensor x) -> Tensor", "is not for plugins"},
      {"mine::twice_(Tensor x) -> Tensor", "an operator in place"},
  };
  for (auto [schema, expected] : cases)
    EXPECT_THAT(loadSchema(schema), HasSubstr(expected)) << schema;
}

TEST(Operators, RefusesTexts) {
  std::string longText(70000, ' ');
  struct {
    const char *tcc_op_v1::*field;
    const char *text;
    const char *expected;
  } cases[] = {
      {&tcc_op_v1::schema, nullptr, "p.so: operator 0: schema: is missing"},
      {&tcc_op_v1::schema, "\xff", "schema: is no UTF-8"},
      {&tcc_op_v1::schema, longText.c_str(), "is longer than 65536 bytes"},
      {&tcc_op_v1::body, nullptr, "has neither a body nor kernels"},
      {&tcc_op_v1::body, longText.c_str(), "is longer than 65536 bytes"},
      {&tcc_op_v1::body, "", "body: has no function 'body'"},
      {&tcc_op_v1::body, "def other(x, by):\n  return x\n", "no function"},
      {&tcc_op_v1::body, "class body(A):\n  x : int\n", "no function 'body'"},
      {&tcc_op_v1::body, "def body(x):\n  return x\n", "has 1 parameters"},
      {&tcc_op_v1::body, "def body(x, by):\n  return x +\n", "line 2"},
      {&tcc_op_v1::body, "def body(x, by):\n  return x $ 2\n", "line 2"},
      {&tcc_op_v1::checks, "x.dim() ==", "checks: line 1: an expression"},
      {&tcc_op_v1::checks, "x.dim() == 2; ", "checks: line 1"},
      {&tcc_op_v1::checks, "x.dim() == 2 3", "the end is expected"},
      {&tcc_op_v1::shapes, "x.shape; x.shape", "has 2 shapes, expected 1"},
      {&tcc_op_v1::shapes, "x.shape[", "shapes: line 1"},
  };
  for (const auto &each : cases) {
    tcc_op_v1 op = makeOperator();
    op.*each.field = each.text;
    EXPECT_THAT(load(op), HasSubstr(each.expected))
        << (each.text ? std::string(each.text).substr(0, 80) : "null");
  }
}

static tcc_op_kernel_v1 &makeGpu(tcc_op_kernel_v1 &kernel) {
  kernel.target = "cuda";
  kernel.threads = 64;
  return kernel;
}

TEST(Operators, RefusesKernels) {
  const char bytes[8] = "object.";
  tcc_op_code_v1 code = {sizeof(code), TCC_OP_OBJECT, "x86-64-v3", bytes,
                         bytes + sizeof(bytes)};
  tcc_op_kernel_v1 good = makeKernel("f32 -> f32", "twice", code);
  good.sizes = "x.numel(); by";
  good.tasks = "x.size(0)";
  auto load = [&](auto change) {
    tcc_op_kernel_v1 kernel = good;
    tcc_op_code_v1 changed = code;
    kernel.codes = &changed;
    tcc_op_v1 op = makeOperator();
    op.shapes = "x.shape";
    op.kernels = &kernel;
    op.kernel_count = 1;
    change(op, kernel, changed);
    return ::load(op);
  };
  using Op = tcc_op_v1;
  using Kernel = tcc_op_kernel_v1;
  using Code = tcc_op_code_v1;
  EXPECT_EQ(load([](Op &, Kernel &, Code &) {}), "");
  std::pair<void (*)(Op &, Kernel &, Code &), const char *> cases[] = {
      {[](Op &op, Kernel &, Code &) { op.shapes = nullptr; }, "but no shapes"},
      {[](Op &op, Kernel &, Code &) { op.kernels = nullptr; }, "1 kernels"},
      {[](Op &op, Kernel &, Code &) { op.kernel_count = 1 << 30; },
       "at most 256"},
      {[](Op &op, Kernel &, Code &) { op.flops = "1; 2"; }, "flops: is"},
      {[](Op &op, Kernel &, Code &) { op.flops = "1 +"; }, "flops: line 1"},
      {[](Op &op, Kernel &, Code &) {
         op.gradient = "def gradient(x):\n  pass\n";
       },
       "gradient: has 1 parameters, expected 4"},
      {[](Op &, Kernel &k, Code &) { k.bytes_of_this = 1; }, "kernel: is 1"},
      {[](Op &, Kernel &k, Code &) { k.target = nullptr; }, "target: is no"},
      {[](Op &, Kernel &k, Code &) { k.target = "gpu"; }, "expected 'cpu'"},
      {[](Op &, Kernel &k, Code &) { k.threads = 32; }, "threads: are 32"},
      {[](Op &, Kernel &k, Code &) { k.target = "cuda"; },
       "threads: are 0, expected a multiple of 32"},
      {[](Op &, Kernel &k, Code &) { makeGpu(k).threads = 100; },
       "threads: are 100"},
      {[](Op &, Kernel &k, Code &) { makeGpu(k).threads = 2048; },
       "threads: are 2048"},
      {[](Op &, Kernel &k, Code &) { makeGpu(k).scratch = "8"; },
       "scratch: is for CPUs alone"},
      {[](Op &, Kernel &k, Code &) { makeGpu(k); },
       "code: has form 1, expected TCC_OP_NVVM"},
      {[](Op &, Kernel &, Code &c) { c.form = TCC_OP_NVVM; },
       "code: has form 2, expected TCC_OP_OBJECT"},
      {[](Op &, Kernel &k, Code &) { k.symbol = ""; }, "symbol: is no name"},
      {[](Op &, Kernel &k, Code &) { k.symbol = "a b"; }, "symbol: is no name"},
      {[](Op &, Kernel &k, Code &) { k.types = nullptr; },
       "types: are missing"},
      {[](Op &, Kernel &k, Code &) { k.types = "f32"; }, "types: 'f32' is not"},
      {[](Op &, Kernel &k, Code &) { k.types = "f32, f32 -> f32"; },
       "is not of 1 arguments"},
      {[](Op &, Kernel &k, Code &) { k.types = "f33 -> f32"; },
       "'f33' is no element type"},
      {[](Op &, Kernel &k, Code &) { k.tasks = nullptr; }, "tasks: is missing"},
      {[](Op &, Kernel &k, Code &) { k.tasks = "1; 2"; },
       "tasks: is missing, or"},
      {[](Op &, Kernel &k, Code &) { k.scratch = "("; }, "scratch: line 1"},
      {[](Op &, Kernel &k, Code &) { k.codes = nullptr; }, "has 1 codes"},
      {[](Op &, Kernel &k, Code &) { k.code_count = 1000; }, "1000 codes"},
      {[](Op &, Kernel &, Code &c) { c.bytes_of_this = 0; },
       "code: is 0 bytes"},
      {[](Op &, Kernel &, Code &c) { c.form = 9; }, "code: has form 9"},
      {[](Op &, Kernel &, Code &c) { c.machine = "?"; }, "machine: is no name"},
      {[](Op &, Kernel &, Code &c) { c.begin = nullptr; }, "code: is missing"},
      {[](Op &, Kernel &, Code &c) { c.end = c.begin; }, "code: is missing"},
  };
  for (auto [change, expected] : cases)
    EXPECT_THAT(load(change), HasSubstr(expected)) << expected;
}

TEST(Operators, RefusesDepth) {
  for (const char *open : {"(", "-", "x + (", "x[", "2 ** "}) {
    std::string text;
    for (int i = 0; i < 5000; ++i)
      text += open;
    tcc_op_v1 op = makeOperator();
    op.checks = text.c_str();
    EXPECT_THAT(load(op), HasSubstr("nested too deeply")) << open;
  }
  std::string sum = "x";
  for (int i = 0; i < 5000; ++i)
    sum += " + x";
  tcc_op_v1 op = makeOperator();
  op.checks = sum.c_str();
  EXPECT_THAT(load(op), HasSubstr("nested too deeply"));
}

TEST(Operators, RefusesDescriptions) {
  tcc_op_v1 op = makeOperator();
  auto load = [](const tcc_plugin_v1 &plugin) {
    plugin::Operators operators;
    Problems problems("model");
    operators.add("p.so", plugin, problems);
    EXPECT_EQ(problems.getExitCode(), 3);
    return print(problems);
  };
  tcc_plugin_v1 plugin = makePlugin(op);
  plugin.abi = 2;
  EXPECT_THAT(load(plugin), HasSubstr("p.so: is for version 2 of tcc/op.h"));
  plugin = makePlugin(op);
  plugin.bytes_of_this = 8;
  EXPECT_THAT(load(plugin), HasSubstr("descriptions of 8 bytes"));
  plugin = makePlugin(op);
  plugin.name = nullptr;
  EXPECT_THAT(load(plugin), HasSubstr("name and version: are missing"));
  plugin = makePlugin(op);
  plugin.operator_count = size_t(-1);
  EXPECT_THAT(load(plugin), HasSubstr("operators, at most 4096"));
  plugin = makePlugin({});
  EXPECT_THAT(load(plugin), HasSubstr("lists no operators"));
  op.bytes_of_this = 4;
  EXPECT_THAT(load(makePlugin(op)), HasSubstr("is 4 bytes long"));
  op = makeOperator();
  op.since = 0;
  EXPECT_THAT(load(makePlugin(op)), HasSubstr("since: is 0"));
  tcc_op_v1 twice[] = {makeOperator(), makeOperator()};
  EXPECT_THAT(load(makePlugin(twice)), HasSubstr("is there twice"));
}

TEST(Operators, OpensLibraries) {
  auto load = [](const std::string &path, int code) {
    plugin::Operators operators;
    Problems problems("model");
    operators.load(path, problems);
    EXPECT_EQ(problems.getExitCode(), code);
    return print(problems);
  };
  EXPECT_THAT(load("nowhere.so", 5), HasSubstr("nowhere.so: cannot be read"));
  EXPECT_THAT(load(TCC_TEST_SOURCE, 3), HasSubstr("cannot be opened"));
  EXPECT_THAT(load(TCC_TEST_EMPTY, 3), HasSubstr("exports no tcc_plugin"));
  EXPECT_EQ(load(TCC_TEST_FORMULAS, 0), "");
}

} // namespace
