//===- PackWeights.cpp - Weights in the order kernels read them -----------===//
#include "compiler/decisions/Decisions.h"
#include "compiler/passes/graph/Passes.h"
#include "compiler/passes/graph/match/Matchers.h"
#include "dialects/graph/Variables.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc {

#define GEN_PASS_DEF_PACKWEIGHTSPASS
#include "compiler/passes/graph/Passes.h.inc"

namespace {

/// Fewer columns are mostly padding in a panel.
constexpr int64_t kMinColumns = 8;

/// Rows of the result for which a panel is read again: so many pay for panels
/// that are made in each run.
constexpr int64_t kMinRows = 256;

/// True if `value` is a parameter that is trained, moved or converted.
bool isTrained(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<ElementOpInterface, CastOp>(op) || op->getNumOperands() != 1)
      return false;
    value = op->getOperand(0);
  }
  auto argument = cast<BlockArgument>(value);
  auto function =
      dyn_cast<FunctionOpInterface>(argument.getOwner()->getParentOp());
  return function && getArgVariable(function, argument.getArgNumber());
}

/// Emits movement ops. On weights they become part of `prepare`, on what is
/// trained a kernel.
class Packer {
public:
  Packer(OpBuilder &builder, Location loc) : builder(builder), loc(loc) {}

  Value reshape(Value x, ArrayRef<int64_t> shape) {
    Type elementType = getTensorType(x).getElementType();
    return reshapeTo(builder, loc, x,
                     RankedTensorType::get(shape, elementType));
  }

  /// Adds zeros at the end of `axis` up to a multiple of `multiple`.
  Value padTo(Value x, int64_t axis, int64_t multiple) {
    RankedTensorType type = getTensorType(x);
    int64_t missing =
        llvm::alignTo(type.getDimSize(axis), multiple) - type.getDimSize(axis);
    if (missing == 0)
      return x;
    SmallVector<int64_t> none(type.getRank(), 0), high = none;
    high[axis] = missing;
    auto scalar = RankedTensorType::get({}, type.getElementType());
    Value zero = makeSplat(builder, loc, scalar, 0.0);
    return builder.create<PadOp>(loc, x, zero, none, high, none,
                                 PadMode::constant);
  }

  /// The first `extent` places of `axis`.
  Value sliceTo(Value x, int64_t axis, int64_t extent) {
    RankedTensorType type = getTensorType(x);
    if (type.getDimSize(axis) == extent)
      return x;
    SmallVector<int64_t> shape(type.getShape());
    shape[axis] = extent;
    SmallVector<int64_t> steps(type.getRank(), 1);
    SmallVector<AffineExpr> starts(type.getRank(),
                                   builder.getAffineConstantExpr(0));
    auto map = AffineMap::get(0, 0, starts, builder.getContext());
    return builder.create<SliceOp>(loc, type.clone(shape), x, map, steps);
  }

  /// Brings the last axes into another order.
  Value permuteLast(Value x, ArrayRef<int64_t> order) {
    int64_t before = getRank(x) - order.size();
    auto permutation = llvm::to_vector(llvm::seq<int64_t>(0, before));
    for (int64_t axis : order)
      permutation.push_back(before + axis);
    return builder.create<TransposeOp>(loc, x, permutation);
  }

private:
  OpBuilder &builder;
  Location loc;
};

/// How a matrix [k, n] or, transposed, [n, k], is split into axes, and the
/// order of these in panels: [ceil(n/w), k, w] or, in groups of g,
/// [ceil(n/w), k/g, w, g].
struct PanelOrder {
  SmallVector<int64_t, 4> split, order;

  PanelOrder(ArrayRef<int64_t> panels, bool transposed, Packing packing) {
    int64_t count = panels[0], depth = panels[1], width = panels[2];
    int64_t group = packing.group;
    if (transposed && group > 1) {
      split = {count, width, depth / group, group};
      order = {0, 2, 1, 3};
    } else if (transposed) {
      split = {count, width, depth};
      order = {0, 2, 1};
    } else if (group > 1) {
      split = {depth / group, group, count, width};
      order = {2, 0, 3, 1};
    } else {
      split = {depth, count, width};
      order = {1, 0, 2};
    }
  }
};

SmallVector<int64_t> replaceLast(ArrayRef<int64_t> shape, size_t count,
                                 ArrayRef<int64_t> by) {
  SmallVector<int64_t> result(shape.drop_back(count));
  llvm::append_range(result, by);
  return result;
}

/// [batch..., k, n] or, transposed, [batch..., n, k] as
/// [batch..., ceil(n/w), k, w]; in groups of g, a panel is [k/g, w, g].
Value packRhs(OpBuilder &builder, Location loc, Value rhs, bool transposed,
              Packing packing) {
  Packer packer(builder, loc);
  int64_t rank = getRank(rhs), axis = rank - (transposed ? 2 : 1);
  int64_t columns =
      MatmulOp::getPanelColumns(getTensorType(rhs).getDimSize(axis));
  Value padded = packer.padTo(rhs, axis, columns);
  ArrayRef<int64_t> shape = getTensorType(padded).getShape();
  int64_t depth = shape[transposed ? rank - 1 : rank - 2];
  int64_t panels[] = {shape[axis] / columns, depth, columns};
  PanelOrder order(panels, transposed, packing);
  Value split = packer.reshape(padded, replaceLast(shape, 2, order.split));
  return packer.reshape(packer.permuteLast(split, order.order),
                        replaceLast(shape, 2, panels));
}

/// [filters, window..., channels/groups] as the rhs of a product for each group
/// or, of a conv that slides, as [window * channels/groups, filters].
Value packFilter(OpBuilder &builder, ConvOp op) {
  Value filter = op.getFilter();
  int64_t groups = op.getGroups(), filters = op.getFilters();
  int64_t depth = getTensorType(filter).getNumElements() / filters;
  Packer packer(builder, op.getLoc());
  if (op.slides())
    return packer.permuteLast(packer.reshape(filter, {filters, depth}), {1, 0});
  Value grouped = packer.reshape(filter, {groups, filters / groups, depth});
  Packing packing = op.getPacking();
  if (packing.group > 1)
    grouped = packer.padTo(grouped, /*axis=*/2, packing.group);
  return packRhs(builder, op.getLoc(), grouped, /*transposed=*/true, packing);
}

/// What `packRhs` made `panels` of, which is of `type`.
Value unpackRhs(OpBuilder &builder, Location loc, Value panels, bool transposed,
                Packing packing, RankedTensorType type) {
  Packer packer(builder, loc);
  int64_t rank = type.getRank(), axis = rank - (transposed ? 2 : 1);
  ArrayRef<int64_t> shape = getTensorType(panels).getShape();
  ArrayRef<int64_t> last = shape.take_back(3);
  PanelOrder order(last, transposed, packing);
  Value split = packer.reshape(
      panels,
      replaceLast(shape, 3, applyPermutation(order.split, order.order)));
  Value x = packer.permuteLast(split, invertPermutationVector(order.order));
  SmallVector<int64_t> padded(type.getShape());
  padded[axis] = last[0] * last[2];
  return packer.sliceTo(packer.reshape(x, padded), axis, type.getDimSize(axis));
}

struct PackWeightsPass : impl::PackWeightsPassBase<PackWeightsPass> {
  void runOnOperation() override {
    DecisionLog log(getOperation(), "pack-weights");
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      packed.clear();
      function.walk([&](Operation *op) {
        if (auto matmul = dyn_cast<MatmulOp>(op))
          pack(matmul, log);
        else if (auto conv = dyn_cast<ConvOp>(op))
          pack(conv, log);
      });
    }
  }

private:
  /// Why the rhs is not packed; empty if it is.
  StringRef getObjection(MatmulOp op) {
    RankedTensorType type = getTensorType(op.getRhs());
    if (op.getPackedRhs())
      return "is packed already";
    bool isWeight = isParameter(op.getRhs());
    if (!isWeight && !isTrained(op.getRhs()))
      return "not a weight";
    if (!isWeight && getRows(op) < kMinRows)
      return "too few rows to make panels in each run";
    if (!type.hasStaticShape())
      return "repeated as often as an input says";
    if (!isa<FloatType>(type.getElementType()))
      return "integers have no panel format";
    if (getConstant(op.getN()).value_or(0) < kMinColumns)
      return "fewer columns than are worth a panel";
    return "";
  }

  /// Rows that read one rhs; 0 if that depends on the input.
  static int64_t getRows(MatmulOp op) {
    bool isShared = getRank(op.getRhs()) == 2;
    Extents extents = getExtents(op.getResult());
    AffineExpr rows = getNumElements(ArrayRef(extents).drop_back().take_back(
                                         isShared ? extents.size() - 1 : 1),
                                     op.getContext());
    return getConstant(rows).value_or(0);
  }

  void pack(MatmulOp op, DecisionLog &log) {
    StringRef objection = getObjection(op);
    if (!objection.empty()) {
      if (isParameter(op.getRhs()))
        log.add(op, "kept", objection);
      return;
    }
    Value rhs = op.getRhs();
    bool transposed = op.getTransposeRhs();
    Value &panels = packed[{rhs, transposed}];
    if (!panels) {
      OpBuilder builder(op);
      builder.setInsertionPointAfterValue(rhs);
      Packing packing = MatmulOp::getPacking(getElementTypeOrSelf(rhs),
                                             *getConstant(op.getK()));
      panels = packRhs(builder, op.getLoc(), rhs, transposed, packing);
      if (isParameter(rhs))
        gatherFromPanels(rhs, panels, transposed, packing, log);
    }
    op.getRhsMutable().assign(panels);
    op.setTransposeRhs(false);
    op.setPackedRhs(true);
    log.add(op, "packed", "panels of columns",
            {{"bytes", double(getBytes(getTensorType(panels)))}});
  }

  /// Ops that read elements of `rhs` by index find them in the panels: it is
  /// not stored twice.
  void gatherFromPanels(Value rhs, Value panels, bool transposed,
                        Packing packing, DecisionLog &log) {
    RankedTensorType type = getTensorType(rhs);
    for (OpOperand &use : llvm::make_early_inc_range(rhs.getUses())) {
      Operation *op = use.getOwner();
      if (!gathers(op))
        continue;
      OpBuilder builder(op);
      use.set(
          unpackRhs(builder, op->getLoc(), panels, transposed, packing, type));
      log.add(op, "reads panels", "a product reads the same weight");
    }
  }

  StringRef getObjection(ConvOp op) {
    if (op.getPackedFilter())
      return "is packed already";
    if (!isParameter(op.getFilter()) &&
        !getTensorType(op.getFilter()).hasStaticShape())
      return "not a weight";
    if (!op.getChannelsLast())
      return "the channels are not last";
    if (!isa<FloatType>(getTensorType(op.getFilter()).getElementType()))
      return "integers have no panel format";
    return "";
  }

  void pack(ConvOp op, DecisionLog &log) {
    StringRef objection = getObjection(op);
    if (!objection.empty()) {
      if (isParameter(op.getFilter()))
        log.add(op, "kept", objection);
      return;
    }
    // A filter is packed by groups; 0 is taken by products that are not
    // transposed, 1 by those that are.
    Value filter = op.getFilter();
    int64_t groups = op.getGroups();
    Value &panels = packed[{filter, groups + 1}];
    if (!panels) {
      OpBuilder builder(op);
      builder.setInsertionPointAfterValue(filter);
      panels = packFilter(builder, op);
    }
    op.getFilterMutable().assign(panels);
    op.setPackedFilter(true);
    log.add(op, "packed", "panels of filters",
            {{"bytes", double(getBytes(getTensorType(panels)))}});
  }

  /// The panels of a weight, so that it is packed once.
  llvm::DenseMap<std::pair<Value, int64_t>, Value> packed;
};

} // namespace
} // namespace tcc
