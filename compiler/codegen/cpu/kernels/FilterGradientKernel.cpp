//===- FilterGradientKernel.cpp - graph.conv_filter_gradient --------------===//
//
// A product: rows are filters, columns are taps of the window and channels, k
// runs over the positions of the gradient in all images, in units.
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cpu/kernels/MatrixKernel.h"
#include "compiler/codegen/cpu/tile/Convolution.h"

using namespace mlir;
using namespace tcc::codegen;
using namespace tcc::graph;

namespace tcc::cpu {

namespace {

struct FilterGradientPlan {
  ConvFilterGradientOp op;
  MatrixAccess gradient, patches;
  int64_t filters, columns, depth;
  bool columnsArePositions;
  Packing packing; // `depth` counts units of it
  BlockChoice blocking;
  Type sum;

  explicit FilterGradientPlan(FusedOp region);
  int64_t getTasks() const {
    return llvm::divideCeil(filters, blocking->m) *
           llvm::divideCeil(columns, blocking->n);
  }
};

} // namespace

/// How an operand is read from memory; one that is not there is packed while it
/// is computed.
static MatrixAccess getAccess(Value tensor, MatrixAccess::Kind inMemory,
                              int64_t kStride) {
  MLIRContext *context = tensor.getContext();
  MatrixAccess access;
  access.elementType = getElementTypeOrSelf(tensor);
  access.laneStride = getAffineConstantExpr(1, context);
  access.kStride = getAffineConstantExpr(kStride, context);
  if (isa<BlockArgument>(tensor)) {
    access.input = tensor;
    access.kind = inMemory;
  } else if (!access.elementType.isF64()) {
    access.elementType = Float32Type::get(context); // as elements arrive
  }
  return access;
}

FilterGradientPlan::FilterGradientPlan(FusedOp region)
    : op(cast<ConvFilterGradientOp>(getAnchor(region))) {
  RankedTensorType type = op.getType();
  filters = type.getDimSize(0);
  columns = type.getNumElements() / std::max<int64_t>(filters, 1);
  depth = op.getGradient().getType().getNumElements() /
          std::max<int64_t>(filters, 1);
  columnsArePositions = readsPositionsOnly(region, 1, type.getRank());
  sum = getSumType(type.getElementType());
  gradient = getAccess(op.getGradient(), MatrixAccess::InPlace, filters);
  patches = getAccess(op.getX(), MatrixAccess::Columns, type.getShape().back());
  auto packingOf = [&](Value operand) {
    return MatmulOp::getPacking(getElementTypeOrSelf(operand), depth);
  };
  if (packingOf(op.getX()) == packingOf(op.getGradient()))
    packing = packingOf(op.getX());
  depth /= packing.group;
  gradient.setPacking(packing);
  patches.setPacking(packing);
  bool packsRows = gradient.kind == MatrixAccess::Columns;
  blocking = {region,
              chooseDeepBlocking(filters, columns, depth, packsRows),
              {1, filters, columns, depth}};
}

namespace {

class FilterGradientEmitter {
public:
  FilterGradientEmitter(KernelBuilder &b, KernelFrame &frame)
      : b(b), frame(frame), plan(frame.region) {}
  void emit();

private:
  KernelBuilder &b;
  KernelFrame &frame;
  FilterGradientPlan plan;

  /// The image and the place of position `k`.
  SmallVector<Value> splitPosition(KernelBuilder &b, Value k);
  /// The taps and channel of a column.
  SmallVector<Value> splitColumn(KernelBuilder &b, Value column);
  Value gradientElement(KernelBuilder &b, Value filter, Value k);
  Value patchElement(KernelBuilder &b, Value column, Value k);
  MatrixOperand gradientOperand();
  MatrixOperand patchOperand();
};

} // namespace

static SmallVector<Value> makeIndices(KernelBuilder &b,
                                      ArrayRef<int64_t> extents) {
  return llvm::map_to_vector(extents, [&](int64_t e) { return b.index(e); });
}

SmallVector<Value> FilterGradientEmitter::splitPosition(KernelBuilder &b,
                                                        Value k) {
  auto shape = plan.op.getGradient().getType().getShape();
  return b.delinearize(k, makeIndices(b, shape.drop_back()));
}

SmallVector<Value> FilterGradientEmitter::splitColumn(KernelBuilder &b,
                                                      Value column) {
  auto shape = plan.op.getType().getShape();
  return b.delinearize(column, makeIndices(b, shape.drop_front()));
}

Value FilterGradientEmitter::gradientElement(KernelBuilder &b, Value filter,
                                             Value k) {
  SmallVector<Value> at = splitPosition(b, k);
  at.push_back(filter);
  return frame.elements.element(b, frame.loc, plan.op.getGradient(), at);
}

Value FilterGradientEmitter::patchElement(KernelBuilder &b, Value column,
                                          Value k) {
  ConvFilterGradientOp op = plan.op;
  auto extents = op.getX().getType().getShape().drop_front();
  SmallVector<Value> at = splitPosition(b, k), tap = splitColumn(b, column);
  Value inside = b.create<arith::ConstantIntOp>(1, 1);
  for (size_t i = 0; i < op.getWindow().size(); ++i) {
    Value begin = b.sub(b.mul(at[1 + i], b.index(op.getStrides()[i])),
                        b.index(op.getPadLow()[i]));
    at[1 + i] = b.add(begin, b.mul(tap[i], b.index(op.getDilations()[i])));
    // Unsigned, so that positions before the input are outside too.
    Value valid = b.create<arith::CmpIOp>(arith::CmpIPredicate::ult, at[1 + i],
                                          b.index(extents[i]));
    inside = b.create<arith::AndIOp>(inside, valid);
  }
  at.push_back(tap.back());
  Type type =
      plan.packing.group > 1 ? b.getF32Type() : plan.patches.elementType;
  return b.choose(
      inside, type,
      [&] { return frame.elements.element(b, frame.loc, op.getX(), at); },
      [&] { return b.zero(type); });
}

MatrixOperand FilterGradientEmitter::gradientOperand() {
  MatrixSource source;
  source.offset = [](KernelBuilder &b, Value) { return b.index(0); };
  source.element = [this](KernelBuilder &b, Value, Value filter, Value k) {
    return gradientElement(b, filter, k);
  };
  return makeOperand(frame, plan.gradient, source, plan.blocking->rows);
}

MatrixOperand FilterGradientEmitter::patchOperand() {
  ConvFilterGradientOp op = plan.op;
  if (!plan.patches.input) {
    ElementFunction element = [this](KernelBuilder &b, Value, Value column,
                                     Value k) {
      return patchElement(b, column, k);
    };
    return packedElements(makeUnits(element, plan.packing),
                          plan.patches.elementType,
                          /*lanesAdjacent=*/true);
  }
  auto from = op.getX().getType().getShape();
  auto to = op.getGradient().getType().getShape();
  ConvolutionInput input{getMemory(frame, plan.patches.input),
                         b.index(from.front()),
                         1,
                         from.back(),
                         {}};
  for (size_t i = 0; i < op.getWindow().size(); ++i)
    input.dimensions.push_back(
        {b.index(from[1 + i]), b.index(to[1 + i]), b.index(op.getWindow()[i]),
         op.getStrides()[i], op.getDilations()[i], b.index(op.getPadLow()[i])});
  input.packing = plan.packing;
  return makePatchColumns(input, plan.patches.elementType,
                          {frame.options.vectorBytes});
}

void FilterGradientEmitter::emit() {
  Contraction c{b.index(1), b.index(plan.filters), b.index(plan.columns),
                b.index(plan.depth)};
  c.lhs = gradientOperand();
  c.rhs = patchOperand();
  c.arithmetic = {.sum = plan.sum, .packing = plan.packing};
  c.blocking = *plan.blocking;
  c.unit = {frame.options.vectorBytes, frame.options.hasPairProducts};
  addResults(c, frame, [this](KernelBuilder &b, Value, Value i, Value j) {
    SmallVector<Value> at(plan.op.getWindow().size(), b.index(0));
    at.push_back(j);
    if (!plan.columnsArePositions)
      at = splitColumn(b, j);
    at.insert(at.begin(), i);
    return at;
  });
  emitContraction(b, c, frame.firstTask, frame.lastTask, frame.scratch);
}

FailureOr<TaskPlan> planFilterGradient(FusedOp region) {
  FilterGradientPlan plan(region);
  return plan.blocking.describe(
      {getAffineConstantExpr(plan.getTasks(), region.getContext()),
       contractionScratchBytes(*plan.blocking, plan.sum,
                               plan.gradient.getPackedType(),
                               plan.patches.getPackedType())});
}

LogicalResult emitFilterGradient(OpBuilder &b, KernelFrame &frame) {
  KernelBuilder builder = makeKernelBuilder(b, frame.loc);
  FilterGradientEmitter(builder, frame).emit();
  return success();
}

} // namespace tcc::cpu
