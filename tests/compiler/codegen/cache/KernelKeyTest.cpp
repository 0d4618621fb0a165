// What names the code of a kernel, and what does not.

#include "compiler/codegen/cache/KernelKey.h"

#include "dialects/exec/ExecDialect.h"
#include "dialects/graph/GraphDialect.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace tcc;

namespace {

/// The parts of a module with a kernel.
struct Parts {
  std::string symbols = "1 to 4 by 1", name = "k0", op = "exp", size = "3",
              plan = "1", location = "\"a\"";

  std::string print() const {
    return "module attributes {graph.symbols = [#graph.symbol<\"n\", " +
           symbols + ">]} { exec.kernel @" + name + " { ^bb0(%x: tensor<" +
           size +
           "xf32>): %0 = graph.fused "
           "<pointwise> (%x) {plan = {unroll = " +
           plan + "}} : (tensor<" + size + "xf32>) -> tensor<" + size +
           "xf32> { ^bb0(%y: tensor<" + size + "xf32>): %1 = graph." + op +
           " %y : (tensor<" + size + "xf32>) -> tensor<" + size + "xf32> loc(" +
           location + ") graph.yield %1 : tensor<" + size + "xf32> } } }";
  }
};

class KernelKeyTest : public testing::Test {
protected:
  std::string makeKey(const Parts &parts,
                      const std::string &settings = "cpu, 64 bytes") {
    MLIRContext context;
    context.loadDialect<graph::GraphDialect, exec::ExecDialect>();
    auto module = parseSourceString<ModuleOp>(parts.print(), &context);
    if (!module) {
      ADD_FAILURE() << parts.print();
      return "";
    }
    return codegen::makeKey(*module->getOps<exec::KernelOp>().begin(),
                            settings);
  }
};

} // namespace

TEST_F(KernelKeyTest, IsTheSameForTheSameCode) {
  std::string key = makeKey({});
  EXPECT_EQ(key.size(), 64u);
  EXPECT_EQ(key.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_EQ(makeKey({}), key) << "in another context";
  EXPECT_EQ(makeKey({.name = "k7_other"}), key);
  EXPECT_EQ(makeKey({.location = "\"b\":3:4"}), key);
}

TEST_F(KernelKeyTest, DependsOnWhatCodeFollowsFrom) {
  std::string key = makeKey({});
  EXPECT_NE(makeKey({.symbols = "1 to 8 by 1"}), key);
  EXPECT_NE(makeKey({.op = "tanh"}), key);
  EXPECT_NE(makeKey({.size = "4"}), key);
  EXPECT_NE(makeKey({.plan = "2"}), key);
  EXPECT_NE(makeKey({}, "cpu, 32 bytes"), key);
}
