#include "compiler/train/MicroBatches.h"
#include "compiler/train/Update.h"
#include "dialects/graph/evaluate/Evaluator.h"
#include "runtime/package/BatchTree.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <map>

using namespace mlir;
using namespace tcc;
using namespace tcc::train;
using namespace tcc::graph;
using format::EntryKind;
using testing::ElementsAre;

namespace {

/// The batches of one rank: @accumulate_step tells their numbers.
class Rank {
public:
  Rank(int64_t rank, int64_t world, int64_t first,
       std::optional<int64_t> leaves = std::nullopt) {
    DialectRegistry registry;
    registry.insert<func::FuncDialect, GraphDialect>();
    registerEvaluatorDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    module = ModuleOp::create(UnknownLoc::get(&context));
    table.declare(StepField::fault, IntegerType::get(&context, 64), 0);
    declareMicroBatches(table, Builder(&context));
    build(leaves);
    state[StepField::rank] = rank;
    state[StepField::world] = world;
    state[StepField::first] = first;
  }

  int64_t accumulate() { return call(EntryKind::accumulate_step); }
  void apply() { call(EntryKind::apply); }
  int64_t &operator[](StepField field) { return state[field]; }

private:
  void build(std::optional<int64_t> leaves) {
    StepFunction take(*module, EntryKind::accumulate_step, table);
    take.addOutput("number", emitBatchNumber(take, leaves));
    emitNextPlace(take);
    take.finish();
    StepFunction update(*module, EntryKind::apply, table);
    TensorEmitter emitter(update.getBuilder(), update.getLoc());
    Expr fault{update.read(StepField::fault), &emitter};
    emitNextUpdate(update, compare(CompareKind::eq, fault, fault.like(0)));
    update.finish();
  }

  static StepField getField(StringAttr variable) {
    for (StepField field : format::EnumValuesStepField())
      if (variable == format::variableOf(field))
        return field;
    llvm_unreachable("all variables are fields");
  }

  /// The output of the entry, or 0.
  int64_t call(EntryKind kind) {
    auto function = module->lookupSymbol<func::FuncOp>(format::nameOf(kind));
    Evaluator::Tensors inputs;
    for (unsigned i = 0; i < function.getNumArguments(); ++i) {
      auto name =
          function.getArgAttrOfType<StringAttr>(i, GraphDialect::kVariableAttr);
      inputs.push_back(
          {cast<RankedTensorType>(function.getArgument(i).getType()),
           {Scalar{.i = state[getField(name)]}}});
    }
    auto results = Evaluator().evaluate(function, inputs);
    if (!results) {
      ADD_FAILURE() << toString(results.takeError());
      return -1;
    }
    int64_t output = 0;
    for (auto [i, tensor] : llvm::enumerate(*results)) {
      auto name = function.getResultAttrOfType<StringAttr>(
          i, GraphDialect::kVariableAttr);
      (name ? state[getField(name)] : output) = tensor.elements[0].i;
    }
    return output;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  VariableTable table;
  std::map<StepField, int64_t> state;
};

/// The numbers of an update of `count` batches of each rank, in the order of
/// ranks; `first` becomes that of the next update.
std::vector<int64_t> update(int64_t world, int64_t count, int64_t &first,
                            std::optional<int64_t> leaves = std::nullopt) {
  std::vector<int64_t> numbers;
  int64_t next = first;
  for (int64_t i = 0; i < world; ++i) {
    Rank rank(i, world, first, leaves);
    for (int64_t j = 0; j < count; ++j)
      numbers.push_back(rank.accumulate());
    rank.apply();
    EXPECT_EQ(rank[StepField::place], 0);
    next = rank[StepField::first];
  }
  first = next;
  return numbers;
}

TEST(MicroBatchesTest, RanksShareTheNumbersInAnyWorld) {
  int64_t first = 0;
  EXPECT_THAT(update(1, 3, first), ElementsAre(0, 1, 2));
  EXPECT_THAT(update(2, 3, first), ElementsAre(3, 5, 7, 4, 6, 8));
  EXPECT_THAT(update(3, 1, first), ElementsAre(9, 10, 11));
  EXPECT_THAT(update(1, 1, first), ElementsAre(12));
}

/// Subtrees of the tree whose leaves are 0 4 2 6 1 5 3 7.
TEST(MicroBatchesTest, RanksTakeSubtreesInTheirOrder) {
  int64_t first = 0;
  EXPECT_THAT(update(1, 8, first, 8), ElementsAre(0, 4, 2, 6, 1, 5, 3, 7));
  EXPECT_THAT(update(2, 4, first, 8),
              ElementsAre(8, 12, 10, 14, 9, 13, 11, 15));
  EXPECT_THAT(update(4, 2, first, 8),
              ElementsAre(16, 20, 17, 21, 18, 22, 19, 23));
  EXPECT_THAT(update(8, 1, first, 8),
              ElementsAre(24, 25, 26, 27, 28, 29, 30, 31));
  EXPECT_THAT(update(1, 1, first, 1), ElementsAre(32));
}

/// Steps and the runtime have one rule.
TEST(MicroBatchesTest, StepsTakeThePlacesThatTheRuntimeReads) {
  for (int64_t leaves : {1, 2, 16}) {
    Rank rank(0, 1, 0, leaves);
    for (int64_t leaf = 0; leaf < leaves; ++leaf)
      EXPECT_EQ(rank.accumulate(), format::placeOfLeaf(leaf, leaves));
  }
}

TEST(MicroBatchesTest, AFaultTakesNone) {
  Rank rank(0, 1, 5);
  EXPECT_EQ(rank.accumulate(), 5);
  rank[StepField::fault] = 1;
  EXPECT_EQ(rank.accumulate(), 6);
  EXPECT_EQ(rank.accumulate(), 6);
  rank.apply();
  EXPECT_EQ(rank[StepField::first], 5);
  EXPECT_EQ(rank[StepField::place], 1);
}

} // namespace
