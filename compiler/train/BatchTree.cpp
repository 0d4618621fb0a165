#include "compiler/train/BatchTree.h"

#include "compiler/decisions/Decisions.h"
#include "dialects/graph/Variables.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tcc::train;
using namespace tcc::graph;

static std::string getPartialSum(int64_t level, StringRef name) {
  return ("partial/" + Twine(level) + "/" + name).str();
}

/// Returns their bytes.
static int64_t declarePartialSums(VariableTable &table,
                                  const Variable &variable, int64_t leaves) {
  int64_t levels = llvm::Log2_64(leaves);
  for (int64_t level = 1; level < levels; ++level)
    table.declare(getPartialSum(level, variable.name), VariableKind::partial,
                  variable.type, 0.0, variable.parameter);
  return std::max<int64_t>(levels - 1, 0) * countBytes(variable.type);
}

std::string tcc::train::declareBatchTree(ModuleOp module, VariableTable &table,
                                         ArrayRef<std::string> names,
                                         int64_t leaves) {
  int64_t partial = 0, gathered = 0;
  for (const std::string &name : names) {
    Variable variable = table.get(name);
    gathered += countBytes(variable.type);
    partial += declarePartialSums(table, variable, leaves);
  }
  module->setAttr(GraphDialect::kExactAttr,
                  Builder(module.getContext()).getI64IntegerAttr(leaves));
  DecisionLog(module, "exact-sums")
      .add(module, "added up in one tree",
           "an update has the same bits by any number of ranks",
           {{"batches", double(leaves)},
            {"partial_bytes", double(partial)},
            {"gathered_bytes", double(gathered)}},
           tcc::format::nameOf(tcc::format::EntryKind::accumulate_step));
  std::string text;
  llvm::raw_string_ostream(text)
      << "parallel.exact = " << leaves << ": partial sums take " << partial
      << " bytes; of W ranks each receives (W - 1) * " << gathered
      << " bytes an update, where an all-reduce moves 2 (W - 1) / W of these";
  return text;
}

BatchTree::BatchTree(StepFunction &step, const TensorEmitter &emitter,
                     int64_t leaves)
    : step(step), emitter(emitter),
      leaf(Expr{step.read(StepField::place), &emitter} /
           Expr{step.read(StepField::world), &emitter}) {
  for (int64_t bit = 1; bit < leaves; bit *= 2) {
    Expr masked = leaf.make<AndOp>(leaf.like(double(bit)));
    bits.push_back(compare(CompareKind::ne, masked, leaf.like(0)).value);
  }
}

/// See placeOfLeaf.
Expr BatchTree::getPlace() const {
  Expr place = leaf.like(0);
  int64_t weight = int64_t(1) << bits.size();
  for (Value bit : bits)
    place = place + select({bit, &emitter}, leaf.like(double(weight /= 2)),
                           leaf.like(0));
  return place;
}

/// A subtree is whole where all lower bits are set, and has a left neighbour
/// where its own bit is.
void BatchTree::add(StringRef name, Value value) {
  Value old = step.read(name);
  auto type = cast<RankedTensorType>(old.getType());
  auto choose = [&](Value condition, Value x, Value y) {
    auto booleans = withElementType(type, emitter.builder.getI1Type());
    if (type.getRank() > 0)
      condition = emitter.emit<BroadcastOp>(booleans, condition);
    return emitter.emit<SelectOp>(condition, x, y);
  };
  Value sum = emitter.castTo(value, type), isWhole;
  for (auto [level, bit] : llvm::enumerate(bits)) {
    Value left = old;
    if (level > 0) {
      std::string partial = getPartialSum(int64_t(level), name);
      left = step.read(partial);
      step.write(partial, choose(isWhole, sum, left));
    }
    isWhole = isWhole ? emitter.emit<AndOp>(isWhole, bit) : bit;
    sum = choose(isWhole, emitter.emit<AddOp>(left, sum), sum);
  }
  step.write(name, sum);
}
