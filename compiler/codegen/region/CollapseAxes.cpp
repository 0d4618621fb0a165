//===- CollapseAxes.cpp - Adjacent axes walked together become one --------===//
//
// Between two neighbouring axes of a value lies a boundary. Ops relate the
// boundaries of their operands to those of their results (they go together), or
// need one to stay. What no op needs, is dropped: all axes between two
// boundaries become one. Axes of extent 1 do not count at all.
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/region/SimplifyRegion.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc::codegen {

namespace {

using Axes = SmallVector<int64_t>;

/// For each axis of op's result the axis of operand 0 that is read at the same
/// index, or -1.
std::optional<Axes> getOperandAxes(Operation *op) {
  Axes axes;
  if (auto broadcast = dyn_cast<BroadcastOp>(op)) {
    Extents from = getExtents(broadcast.getX());
    Extents to = getExtents(broadcast.getResult());
    int64_t added = to.size() - from.size();
    for (int64_t i = 0; i < int64_t(to.size()); ++i)
      axes.push_back(
          i < added || getConstant(from[i - added]) == 1 ? -1 : i - added);
    return axes;
  }
  if (auto transpose = dyn_cast<TransposeOp>(op))
    return Axes(transpose.getPermutation());
  if (!isOnePerRow(op))
    return std::nullopt;
  auto map = cast<IterationOpInterface>(op).getResultMap(0);
  for (AffineExpr axis : map.getResults())
    axes.push_back(cast<AffineDimExpr>(axis).getPosition());
  return axes;
}

class Collapser {
public:
  explicit Collapser(Block &body) : body(body) {}

  void run();

private:
  /// The boundary before `axis`, which is not the first long axis.
  using Boundary = std::pair<void *, int64_t>;
  static Boundary before(Value tensor, int64_t axis) {
    return {tensor.getAsOpaquePointer(), axis};
  }

  void keepAll(Value tensor);
  void relateAxes(Operation *op, ArrayRef<int64_t> operandAxes);
  void relateReshape(ReshapeOp op);
  void relate(Operation *op);
  bool isKept(Value tensor, int64_t axis) const;
  SmallVector<Axes> getGroups(Value tensor) const;
  RankedTensorType getCollapsedType(Value tensor) const;

  void rewrite(Operation *op);
  Value rewriteBroadcast(OpBuilder &b, BroadcastOp op);
  Value rewriteTranspose(OpBuilder &b, TransposeOp op);
  Value rewriteReduction(OpBuilder &b, Operation *op);
  Value rewriteConstant(OpBuilder &b, ConstantOp op);
  Value clone(OpBuilder &b, Operation *op, ValueRange operands, Type type);
  Value get(Value tensor) const { return values.lookup(tensor); }

  Block &body;
  llvm::EquivalenceClasses<Boundary> classes;
  llvm::SetVector<Boundary> kept;
  llvm::DenseSet<Boundary> keptLeaders;
  llvm::DenseMap<Value, Value> values;
};

} // namespace

void Collapser::keepAll(Value tensor) {
  Axes axes = getLongAxes(tensor);
  for (size_t i = 1; i < axes.size(); ++i)
    kept.insert(before(tensor, axes[i]));
}

/// Neighbours in the result that are neighbours in the operand go together with
/// those; neighbours that are both not read there need nothing.
void Collapser::relateAxes(Operation *op, ArrayRef<int64_t> operandAxes) {
  Value from = op->getOperand(0), to = op->getResult(0);
  Axes longAxes = getLongAxes(from);
  llvm::SmallDenseSet<int64_t> related;
  auto getPlace = [&](int64_t axis) {
    return llvm::find(longAxes, axis) - longAxes.begin();
  };
  Axes toAxes = getLongAxes(to);
  for (size_t i = 1; i < toAxes.size(); ++i) {
    int64_t left = operandAxes[toAxes[i - 1]], right = operandAxes[toAxes[i]];
    if (left < 0 && right < 0)
      continue;
    if (left < 0 || right < 0 || getPlace(left) + 1 != getPlace(right)) {
      kept.insert(before(to, toAxes[i]));
      continue;
    }
    classes.unionSets(before(from, right), before(to, toAxes[i]));
    related.insert(right);
  }
  // What is not related stays, but between axes that the result lacks.
  for (size_t i = 1; i < longAxes.size(); ++i) {
    bool areBothMissing = !llvm::is_contained(operandAxes, longAxes[i - 1]) &&
                          !llvm::is_contained(operandAxes, longAxes[i]);
    if (!related.contains(longAxes[i]) && !areBothMissing)
      kept.insert(before(from, longAxes[i]));
  }
}

/// Axes in groups of equal products: boundaries between groups go together, and
/// those inside of one all stay or all go.
void Collapser::relateReshape(ReshapeOp op) {
  Value from = op.getX(), to = op.getResult();
  Axes fromAxes = getLongAxes(from), toAxes = getLongAxes(to);
  auto getLongExtents = [](Value tensor, const Axes &axes) {
    Extents extents;
    for (int64_t axis : axes)
      extents.push_back(getExtent(tensor, axis));
    return extents;
  };
  for (const AxisGroup &group :
       groupAxes(getLongExtents(from, fromAxes), getLongExtents(to, toAxes))) {
    size_t i = group.fromBegin, j = group.toBegin;
    bool isFirst = i == 0 || j == 0;
    if (!isFirst && i < fromAxes.size() && j < toAxes.size())
      classes.unionSets(before(from, fromAxes[i]), before(to, toAxes[j]));
    SmallVector<Boundary> inner;
    for (size_t k = i + 1; k < group.fromEnd; ++k)
      inner.push_back(before(from, fromAxes[k]));
    for (size_t k = j + 1; k < group.toEnd; ++k)
      inner.push_back(before(to, toAxes[k]));
    for (const Boundary &boundary : ArrayRef(inner).drop_front(!inner.empty()))
      classes.unionSets(inner.front(), boundary);
  }
}

void Collapser::relate(Operation *op) {
  if (isa<PointwiseOpInterface>(op)) {
    Value result = op->getResult(0);
    for (Value operand : op->getOperands())
      for (int64_t axis : getLongAxes(result))
        classes.unionSets(before(operand, axis), before(result, axis));
    return;
  }
  if (auto reshape = dyn_cast<ReshapeOp>(op))
    return relateReshape(reshape);
  if (std::optional<Axes> axes = getOperandAxes(op))
    return relateAxes(op, *axes);
  if (isa<ConstantOp, YieldOp>(op))
    return;
  for (Value operand : op->getOperands())
    keepAll(operand);
  for (Value result : op->getResults())
    keepAll(result);
}

bool Collapser::isKept(Value tensor, int64_t axis) const {
  auto leader = classes.findLeader(before(tensor, axis));
  return leader == classes.member_end() ? kept.contains(before(tensor, axis))
                                        : keptLeaders.contains(*leader);
}

/// The long axes of `tensor` between boundaries that stay.
SmallVector<Axes> Collapser::getGroups(Value tensor) const {
  SmallVector<Axes> groups;
  for (int64_t axis : getLongAxes(tensor)) {
    if (groups.empty() || isKept(tensor, axis))
      groups.emplace_back();
    groups.back().push_back(axis);
  }
  return groups;
}

RankedTensorType Collapser::getCollapsedType(Value tensor) const {
  Extents from = getExtents(tensor), to;
  for (const Axes &group : getGroups(tensor)) {
    AffineExpr product = from[group.front()];
    for (int64_t axis : ArrayRef(group).drop_front())
      product = product * from[axis];
    to.push_back(product);
  }
  Type elementType = cast<RankedTensorType>(tensor.getType()).getElementType();
  return makeTensorType(to, elementType);
}

Value Collapser::clone(OpBuilder &b, Operation *op, ValueRange operands,
                       Type type) {
  Operation *copy = b.clone(*op);
  copy->setOperands(operands);
  copy->getResult(0).setType(type);
  return copy->getResult(0);
}

/// Each group of the result is read as a whole, or repeated as a whole.
Value Collapser::rewriteBroadcast(OpBuilder &b, BroadcastOp op) {
  Axes operandAxes = *getOperandAxes(op);
  Extents extents = getExtents(getCollapsedType(op.getResult()));
  for (auto [extent, group] :
       llvm::zip_equal(extents, getGroups(op.getResult())))
    if (operandAxes[group.front()] < 0)
      extent = b.getAffineConstantExpr(1);
  Type elementType = op.getType().getElementType();
  Value aligned =
      reshapeTo(b, get(op.getX()), makeTensorType(extents, elementType));
  Type type = getCollapsedType(op.getResult());
  if (aligned.getType() == type)
    return aligned;
  return b.create<BroadcastOp>(op.getLoc(), type, aligned);
}

Value Collapser::rewriteTranspose(OpBuilder &b, TransposeOp op) {
  SmallVector<Axes> from = getGroups(op.getX());
  SmallVector<int64_t> permutation;
  for (const Axes &group : getGroups(op.getResult())) {
    int64_t axis = op.getPermutation()[group.front()];
    auto it = llvm::find_if(
        from, [&](const Axes &axes) { return axes.front() == axis; });
    permutation.push_back(it - from.begin());
  }
  return b.createOrFold<TransposeOp>(op.getLoc(),
                                     getCollapsedType(op.getResult()),
                                     get(op.getX()), permutation);
}

static Value createZeros(OpBuilder &b, Location loc, RankedTensorType type) {
  auto scalar = RankedTensorType::get({}, type.getElementType());
  Value zero = b.create<ConstantOp>(
      loc, scalar,
      DenseElementsAttr::get(scalar, b.getZeroAttr(type.getElementType())));
  return zero.getType() == type
             ? zero
             : b.create<BroadcastOp>(loc, type, zero).getResult();
}

/// Reduces the groups of the axes that `op` reduces.
Value Collapser::rewriteReduction(OpBuilder &b, Operation *op) {
  Axes operandAxes = *getOperandAxes(op);
  SmallVector<int64_t> reduced;
  for (auto [i, group] : llvm::enumerate(getGroups(op->getOperand(0))))
    if (!llvm::is_contained(operandAxes, group.front()))
      reduced.push_back(i);
  Value x = get(op->getOperand(0));
  RankedTensorType type = getCollapsedType(op->getResult(0));
  auto toIndex = dyn_cast<ArgReduceOp>(op);
  // A row of one element is itself the result, and its index is 0.
  if (reduced.empty() && toIndex)
    return createZeros(b, op->getLoc(), type);
  if (reduced.empty())
    return reshapeTo(b, x, type);
  Value result;
  if (toIndex)
    result = b.create<ArgReduceOp>(op->getLoc(), toIndex.getKind(), x,
                                   reduced.front(), toIndex.getSelectLast());
  else
    result = b.create<ReduceOp>(op->getLoc(), cast<ReduceOp>(op).getKind(), x,
                                reduced);
  return reshapeTo(b, result, type);
}

Value Collapser::rewriteConstant(OpBuilder &b, ConstantOp op) {
  auto type = getCollapsedType(op.getResult());
  auto value = cast<DenseElementsAttr>(op.getValue()).reshape(type);
  return b.create<ConstantOp>(op.getLoc(), type, value);
}

void Collapser::rewrite(Operation *op) {
  OpBuilder b(op);
  Value result = op->getNumResults() ? op->getResult(0) : Value();
  if (auto yield = dyn_cast<YieldOp>(op)) {
    for (OpOperand &operand : yield->getOpOperands())
      operand.set(get(operand.get()));
  } else if (isa<PointwiseOpInterface>(op)) {
    auto operands =
        llvm::map_to_vector(op->getOperands(), [&](Value x) { return get(x); });
    values[result] = clone(b, op, operands, getCollapsedType(result));
  } else if (auto reshape = dyn_cast<ReshapeOp>(op)) {
    values[result] =
        reshapeTo(b, get(reshape.getX()), getCollapsedType(result));
  } else if (auto broadcast = dyn_cast<BroadcastOp>(op)) {
    values[result] = rewriteBroadcast(b, broadcast);
  } else if (auto transpose = dyn_cast<TransposeOp>(op)) {
    values[result] = rewriteTranspose(b, transpose);
  } else if (auto constant = dyn_cast<ConstantOp>(op)) {
    values[result] = rewriteConstant(b, constant);
  } else if (getOperandAxes(op)) {
    values[result] = rewriteReduction(b, op);
  } else {
    // The op stays as it is, between views.
    for (OpOperand &operand : op->getOpOperands())
      operand.set(reshapeTo(b, get(operand.get()), operand.get().getType()));
    b.setInsertionPointAfter(op);
    for (Value each : op->getResults())
      values[each] = reshapeTo(b, each, getCollapsedType(each));
  }
}

void Collapser::run() {
  for (Operation &op : body)
    relate(&op);
  for (Boundary boundary : kept) {
    auto leader = classes.findLeader(boundary);
    if (leader != classes.member_end())
      keptLeaders.insert(*leader);
  }
  SmallVector<Operation *> ops;
  for (Operation &op : body)
    ops.push_back(&op);
  SmallVector<Type> argumentTypes;
  for (Value argument : body.getArguments()) {
    argumentTypes.push_back(getCollapsedType(argument));
    values[argument] = argument;
  }
  // Types are computed from the old ones: arguments change last.
  SmallVector<std::pair<BlockArgument, Type>> changes;
  for (auto [argument, type] :
       llvm::zip_equal(body.getArguments(), argumentTypes))
    changes.push_back({argument, type});
  for (auto [argument, type] : changes) {
    BlockArgument copy = body.addArgument(type, argument.getLoc());
    values[argument] = copy;
  }
  for (Operation *op : ops)
    rewrite(op);
  for (Operation *op : llvm::reverse(ops))
    if (!op->hasTrait<OpTrait::IsTerminator>() && op->use_empty())
      op->erase();
  body.eraseArguments(0, changes.size());
}

void collapseAxes(Block &body) { Collapser(body).run(); }

} // namespace tcc::codegen
