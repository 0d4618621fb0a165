#include "dialects/graph/interfaces/Gradients.h"
#include "dialects/graph/ops/TensorEmitter.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace tcc::graph {

Value Gradients::get(Value value) {
  if (Value gradient = find(value))
    return gradient;
  return TensorEmitter(builder, value.getLoc()).splat(value, 0.0);
}

void Gradients::add(Value value, Value part) {
  if (!part || !wants(value))
    return;
  assert(part.getType() == value.getType() && "a gradient of another type");
  Value &gradient = gradients[value];
  gradient =
      gradient ? builder.create<AddOp>(part.getLoc(), gradient, part) : part;
}

void Gradients::replace(Value value, Value other) {
  value.replaceAllUsesWith(other);
  if (wants(value))
    active.insert(other);
  if (Value gradient = find(value))
    gradients[other] = gradient;
}

SmallVector<Value> getCaptures(Operation *op) {
  llvm::SetVector<Value> captures;
  op->walk([&](Operation *inner) {
    if (inner == op)
      return;
    for (Value operand : inner->getOperands())
      if (!op->isAncestor(operand.getParentRegion()->getParentOp()))
        captures.insert(operand);
  });
  return captures.takeVector();
}

/// All that `op` reads, also inside its regions.
static SmallVector<Value> getReads(Operation *op) {
  SmallVector<Value> reads(op->getOperands());
  if (op->getNumRegions() > 0)
    llvm::append_range(reads, getCaptures(op));
  return reads;
}

static bool isFloatTensor(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && isa<FloatType>(type.getElementType());
}

namespace {

/// One run over a block.
class Differentiation {
public:
  Differentiation(OpBuilder &builder, ValueRange results, ValueRange inputs)
      : builder(builder), block(builder.getInsertionBlock()), results(results),
        inputs(inputs) {}

  LogicalResult run(ValueRange seeds, SmallVectorImpl<Value> &gradients);

private:
  void findDependent();
  void findActive();
  LogicalResult emitGradients(Operation *op, Gradients &gradients);
  bool isOnPath(Operation *op) const {
    return llvm::any_of(op->getResults(),
                        [&](Value value) { return active.contains(value); });
  }

  OpBuilder &builder;
  Block *block;
  ValueRange results, inputs;
  llvm::DenseSet<Value> dependent; // on the inputs
  llvm::DenseSet<Value> active;    // that the results depend on, too
};

} // namespace

void Differentiation::findDependent() {
  dependent.insert(inputs.begin(), inputs.end());
  for (Operation &op : *block) {
    auto isDependent = [&](Value value) { return dependent.contains(value); };
    if (llvm::none_of(getReads(&op), isDependent))
      continue;
    for (Value result : op.getResults())
      if (isFloatTensor(result))
        dependent.insert(result);
  }
}

void Differentiation::findActive() {
  findDependent();
  for (Value result : results)
    if (dependent.contains(result))
      active.insert(result);
  for (Operation &op : llvm::reverse(*block)) {
    if (!isOnPath(&op))
      continue;
    for (Value value : getReads(&op))
      if (dependent.contains(value))
        active.insert(value);
  }
}

LogicalResult Differentiation::emitGradients(Operation *op,
                                             Gradients &gradients) {
  if (auto differentiable = dyn_cast<DifferentiableOpInterface>(op))
    return differentiable.emitGradients(gradients);
  return op->emitError("has no derivative");
}

LogicalResult Differentiation::run(ValueRange seeds,
                                   SmallVectorImpl<Value> &found) {
  findActive();
  Gradients gradients(builder, active);
  for (auto [result, seed] : llvm::zip_equal(results, seeds))
    gradients.add(result, seed);
  SmallVector<Operation *> path;
  for (Operation &op : *block)
    if (isOnPath(&op))
      path.push_back(&op);
  // After a failure nothing is of use but to know the others.
  bool hasFailed = false;
  for (Operation *op : llvm::reverse(path)) {
    auto hasGradient = [&](Value result) {
      return bool(gradients.find(result));
    };
    if (hasFailed || llvm::any_of(op->getResults(), hasGradient))
      hasFailed |= failed(emitGradients(op, gradients));
  }
  for (Value input : inputs)
    found.push_back(gradients.find(input));
  return failure(hasFailed);
}

LogicalResult differentiate(OpBuilder &builder, ValueRange results,
                            ValueRange seeds, ValueRange inputs,
                            SmallVectorImpl<Value> &gradients) {
  return Differentiation(builder, results, inputs).run(seeds, gradients);
}

} // namespace tcc::graph
