// Locations say which node and module an op came from, and of which phase it
// is.

#include "dialects/graph/Phases.h"
#include "dialects/graph/NodeNames.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/MLIRContext.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace tcc;
using format::Phase;

namespace {

class PhasesTest : public testing::Test {
protected:
  MLIRContext context;
  Builder builder{&context};
  Location conv = makeNodeLocation(
      &context, {.name = "conv", .op = "Conv", .module = "body.0"});
  Location relu =
      makeNodeLocation(&context, {.name = "relu", .op = "Relu", .module = ""});
};

TEST_F(PhasesTest, LocationsSayWhereOpsCameFrom) {
  NodeOrigin origin = getOrigin(builder.getFusedLoc({conv, relu}));
  EXPECT_EQ(origin.name, "conv");
  EXPECT_EQ(origin.op, "Conv");
  EXPECT_EQ(origin.module, "body.0");
  EXPECT_EQ(getOrigin(relu).op, "Relu");
  EXPECT_EQ(getOrigin(relu).module, "");
  EXPECT_EQ(getOrigin(builder.getUnknownLoc()).name, "");
  EXPECT_EQ(getOrigin(NameLoc::get(builder.getStringAttr("alone"))).op, "");
}

TEST_F(PhasesTest, ModulesAndOperatorsAreNoNodes) {
  llvm::SetVector<StringRef> names =
      getNodeNames(builder.getFusedLoc({conv, relu}));
  EXPECT_THAT(names.takeVector(), testing::ElementsAre("conv", "relu"));
}

TEST_F(PhasesTest, TheLastPhaseThatIsGivenCounts) {
  EXPECT_EQ(getPhase(conv), std::nullopt);
  Location forward = withPhase(conv, Phase::forward);
  EXPECT_EQ(getPhase(forward), Phase::forward);
  EXPECT_EQ(getPhase(withPhase(forward, Phase::backward)), Phase::backward);
  EXPECT_EQ(withoutPhase(withPhase(forward, Phase::backward)), conv);
  EXPECT_EQ(withoutPhase(conv), conv);
  EXPECT_EQ(getOrigin(forward).module, "body.0");
}

TEST_F(PhasesTest, KernelsAreOfTheirFirstOpsPhase) {
  Location fused = builder.getFusedLoc(
      {withPhase(conv, Phase::backward), withPhase(relu, Phase::optimizer)});
  EXPECT_EQ(getPhase(fused), Phase::backward);
  // A location of several ops that were fused before they got a phase.
  Location both = withPhase(builder.getFusedLoc({conv, relu}), Phase::forward);
  EXPECT_EQ(getPhase(both), Phase::forward);
  EXPECT_EQ(withoutPhase(both), builder.getFusedLoc({conv, relu}));
}

} // namespace
