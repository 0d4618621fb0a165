//===- MoveTransposes.cpp - Results in their own order --------------------===//
//
// f(transpose back(x), y), all of it transposed, is f(x, transpose(y)): of what
// a region computes in another order than its results have, some inputs were
// transposed for it. An update of weights reads a few tensors in their order
// and one gradient in another.
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/region/SimplifyRegion.h"

#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc::codegen {

namespace {

class TransposeMover {
public:
  TransposeMover(Block &body, ArrayRef<int64_t> permutation)
      : body(body), permutation(permutation) {}

  /// Fewer tensors are transposed then.
  bool isWorthwhile(ValueRange results);
  Value get(Value x);

private:
  bool isTransposedBack(Value x) const;
  static bool isScalar(Value x);
  void count(Value x);

  Block &body;
  SmallVector<int64_t> permutation;
  llvm::DenseSet<Value> counted;
  int64_t saved = 0;
  llvm::DenseMap<Value, Value> transposed;
};

} // namespace

bool TransposeMover::isTransposedBack(Value x) const {
  auto op = x.getDefiningOp<TransposeOp>();
  return op && invertPermutationVector(op.getPermutation()) == permutation;
}

/// Or a broadcast of one.
bool TransposeMover::isScalar(Value x) {
  auto broadcast = x.getDefiningOp<BroadcastOp>();
  return broadcast && getExtents(broadcast.getX()).empty();
}

void TransposeMover::count(Value x) {
  if (!counted.insert(x).second || isScalar(x))
    return;
  Operation *op = x.getDefiningOp();
  if (op && isa<PointwiseOpInterface>(op))
    for (Value y : op->getOperands())
      count(y);
  else
    saved += isTransposedBack(x) ? 1 : -1;
}

bool TransposeMover::isWorthwhile(ValueRange results) {
  saved = results.size();
  for (Value result : results)
    count(result);
  return saved > 0;
}

/// `x` transposed.
Value TransposeMover::get(Value x) {
  Value &result = transposed[x];
  if (result)
    return result;
  if (isTransposedBack(x))
    return result = x.getDefiningOp<TransposeOp>().getX();
  OpBuilder b(body.getTerminator());
  Operation *op = x.getDefiningOp();
  Extents extents = applyPermutation(ArrayRef(getExtents(x)), permutation);
  Type type = makeTensorType(extents, getElementTypeOrSelf(x));
  if (isScalar(x))
    return result = b.create<BroadcastOp>(x.getLoc(), type, op->getOperand(0));
  if (!op || !isa<PointwiseOpInterface>(op))
    return result = b.create<TransposeOp>(x.getLoc(), x, permutation);
  auto operands =
      llvm::map_to_vector(op->getOperands(), [&](Value y) { return get(y); });
  OperationState state(op->getLoc(), op->getName(), operands, {type},
                       op->getAttrs());
  // Not `result`, which the operands may have moved.
  return transposed[x] = b.create(state)->getResult(0);
}

void moveTransposes(Block &body) {
  auto yielded = body.getTerminator()->getOpOperands();
  auto first = yielded.front().get().getDefiningOp<TransposeOp>();
  if (!first)
    return;
  SmallVector<Value> from;
  for (OpOperand &result : yielded) {
    auto op = result.get().getDefiningOp<TransposeOp>();
    if (!op || op.getPermutation() != first.getPermutation())
      return;
    from.push_back(op.getX());
  }
  TransposeMover mover(body, first.getPermutation());
  if (!mover.isWorthwhile(from))
    return;
  for (auto [result, x] : llvm::zip_equal(yielded, from))
    result.set(mover.get(x));
}

} // namespace tcc::codegen
