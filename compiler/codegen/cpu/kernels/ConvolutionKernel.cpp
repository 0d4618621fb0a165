//===- ConvolutionKernel.cpp - graph.conv as a contraction ----------------===//
//
// One product for each group: rows are output positions of all images, columns
// are filters, k runs over the taps of the window and the group's channels.
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cpu/kernels/MatrixKernel.h"
#include "compiler/codegen/cpu/tile/Convolution.h"
#include "compiler/codegen/cpu/tile/PackedUnit.h"

using namespace mlir;
using namespace tcc::codegen;
using namespace tcc::graph;

namespace tcc::cpu {

namespace {

struct ConvolutionPlan {
  ConvOp op;
  MatrixAccess patches, filter;
  int64_t groups, filters, channels, taps; // of one group, but for groups
  Extents pixels;                          // images, spatial...
  AffineExpr rows;
  bool rowsArePositions;
  Packing packing; // k counts units of it
  BlockChoice blocking;
  Type sum;

  explicit ConvolutionPlan(FusedOp region);
  int64_t getDepth() const { return taps * channels; }
  int64_t inUnits(int64_t elements) const {
    return llvm::divideCeil(elements, packing.group);
  }
  /// Whether the input is read in units.
  bool hasUnits() const { return channels % packing.group == 0; }
  bool packsPatches() const {
    return !patches.input || !hasUnits() ||
           cpu::packsPatches(inUnits(channels));
  }
  AffineExpr getTasks() const {
    int64_t columns = llvm::divideCeil(filters, blocking->n);
    return rows.ceilDiv(blocking->m) * (groups * columns);
  }
};

} // namespace

static MatrixAccess getAccess(Value tensor, MatrixAccess::Kind inMemory) {
  MatrixAccess access;
  Type element = getElementTypeOrSelf(tensor);
  access.isUnsigned = element.isUnsignedInteger();
  access.elementType = element;
  if (auto integer = dyn_cast<IntegerType>(element))
    access.elementType =
        IntegerType::get(tensor.getContext(), integer.getWidth());
  if (isa<BlockArgument>(tensor)) {
    access.input = tensor;
    access.kind = inMemory;
  } else if (isa<FloatType>(element) && !element.isF64()) {
    access.elementType = Float32Type::get(tensor.getContext());
  }
  return access;
}

ConvolutionPlan::ConvolutionPlan(FusedOp region)
    : op(cast<ConvOp>(getAnchor(region))), groups(op.getGroups()),
      filters(op.getFilters() / op.getGroups()) {
  MLIRContext *context = op.getContext();
  channels = *getConstant(getExtent(op.getX(), op.getChannelAxis())) / groups;
  taps = 1;
  for (int64_t extent : op.getWindow())
    taps *= extent;
  pixels = getExtents(op.getResult());
  pixels.pop_back();
  rows = getNumElements(pixels, context);
  rowsArePositions = readsPositionsOnly(region, 0, pixels.size());
  sum = getSumType(getElementTypeOrSelf(op.getResult()));
  packing = op.getPacking();
  if (!op.getPackedFilter() && getDepth() % packing.group != 0)
    packing = Packing();
  ContractionSizes sizes{groups, getConstant(rows), filters,
                         inUnits(getDepth())};
  blocking = {region, chooseBlocking(sizes), sizes};
  filter = getAccess(op.getFilter(), op.getPackedFilter() ? MatrixAccess::Panels
                                                          : MatrixAccess::Rows);
  filter.laneStride = getAffineConstantExpr(getDepth(), context);
  filter.kStride = getAffineConstantExpr(1, context);
  patches = getAccess(op.getX(), MatrixAccess::InPlace);
  patches.kStride = filter.kStride;
  patches.setPacking(packing);
  filter.setPacking(packing);
}

namespace {

class ConvolutionEmitter {
public:
  ConvolutionEmitter(KernelBuilder &b, KernelFrame &frame)
      : b(b), frame(frame), plan(frame.region) {}
  void emit();

private:
  KernelBuilder &b;
  KernelFrame &frame;
  ConvolutionPlan plan;

  Value size(OpBuilder &b, AffineExpr expression) {
    return frame.elements.size(b, frame.loc, expression);
  }
  SmallVector<Value> pixelSizes(KernelBuilder &b) {
    return llvm::map_to_vector(plan.pixels,
                               [&](AffineExpr e) { return size(b, e); });
  }
  MatrixOperand patchOperand();
  std::function<RunFilter(KernelBuilder &, Value)> skipZeroTaps();
  MatrixOperand filterOperand();
  Value patchElement(KernelBuilder &b, Value group, Value row, Value k);
  Value filterElement(KernelBuilder &b, Value group, Value column, Value k);
  SmallVector<Value> resultIndices(KernelBuilder &b, Value group, Value row,
                                   Value column);
};

} // namespace

/// The taps and channel of `k`.
static SmallVector<Value> splitDepth(KernelBuilder &b, ConvOp op,
                                     int64_t channels, Value k) {
  SmallVector<Value> sizes;
  for (int64_t extent : op.getWindow())
    sizes.push_back(b.index(extent));
  sizes.push_back(b.index(channels));
  return b.delinearize(k, sizes);
}

MatrixOperand ConvolutionEmitter::patchOperand() {
  ConvOp op = plan.op;
  if (!plan.patches.input) {
    ElementFunction element = [this](KernelBuilder &b, Value group, Value row,
                                     Value k) {
      return patchElement(b, group, row, k);
    };
    return packedElements(makeUnits(element, plan.packing),
                          plan.patches.elementType,
                          /*lanesAdjacent=*/false);
  }
  Memory memory = getMemory(frame, plan.patches.input);
  Type unit = getUnitType(memory.element, plan.packing);
  ConvolutionInput input{
      memory, size(b, plan.pixels[0]), plan.groups, plan.channels, {}};
  if (plan.hasUnits()) {
    input.base = asUnits(memory, plan.packing);
    input.channels = plan.inUnits(plan.channels);
  } else {
    input.packing = plan.packing;
  }
  for (size_t i = 0; i < op.getWindow().size(); ++i)
    input.dimensions.push_back(
        {size(b, getExtent(op.getX(), 1 + i)), size(b, plan.pixels[1 + i]),
         b.index(op.getWindow()[i]), op.getStrides()[i], op.getDilations()[i],
         b.index(op.getPadLow()[i])});
  MatrixOperand operand = makePatches(b, input, unit, plan.blocking->rows,
                                      {frame.options.vectorBytes});
  operand.skipsRuns = skipZeroTaps();
  return operand;
}

/// Runs are taps. Null where not all filters of a panel have the same.
std::function<RunFilter(KernelBuilder &, Value)>
ConvolutionEmitter::skipZeroTaps() {
  auto zeros = plan.op.getZeroTaps();
  int64_t part = zeros ? plan.filters / int64_t(zeros->size()) : 0;
  if (!zeros || part % kPanelColumns != 0)
    return {};
  return [zeros = *zeros, part](KernelBuilder &b, Value column) {
    auto makeBits = [&](int64_t bits) -> Value {
      return b.create<arith::ConstantIntOp>(bits, 64);
    };
    Value number = b.div(column, b.index(part)), bits = makeBits(zeros[0]);
    for (auto [i, own] : llvm::enumerate(zeros.drop_front()))
      bits = b.create<arith::SelectOp>(b.equal(number, b.index(i + 1)),
                                       makeBits(own), bits);
    return [bits](KernelBuilder &b, Value tap) -> Value {
      Value place = b.createOrFold<arith::IndexCastOp>(b.getI64Type(), tap);
      Value bit = b.create<arith::ShRUIOp>(bits, place);
      return b.create<arith::TruncIOp>(b.getI1Type(), bit);
    };
  };
}

/// An input that is computed where it is read; zero outside.
Value ConvolutionEmitter::patchElement(KernelBuilder &b, Value group, Value row,
                                       Value k) {
  ConvOp op = plan.op;
  SmallVector<Value> tap = splitDepth(b, op, plan.channels, k);
  SmallVector<Value> pixel = b.delinearize(row, pixelSizes(b));
  SmallVector<Value> at = {pixel[0]};
  // Zeros fill up the last unit.
  Value inside = b.less(k, b.index(plan.getDepth()));
  for (size_t i = 0; i < op.getWindow().size(); ++i) {
    Value begin = b.sub(b.mul(pixel[1 + i], b.index(op.getStrides()[i])),
                        b.index(op.getPadLow()[i]));
    Value x = b.add(begin, b.mul(tap[i], b.index(op.getDilations()[i])));
    Value valid = b.create<arith::CmpIOp>(arith::CmpIPredicate::ult, x,
                                          size(b, getExtent(op.getX(), 1 + i)));
    inside = b.create<arith::AndIOp>(inside, valid);
    at.push_back(x);
  }
  at.push_back(b.add(b.mul(group, b.index(plan.channels)), tap.back()));
  Type type =
      plan.packing.group > 1 ? b.getF32Type() : plan.patches.elementType;
  return b.choose(
      inside, type,
      [&] { return frame.elements.element(b, frame.loc, op.getX(), at); },
      [&] { return b.zero(type); });
}

MatrixOperand ConvolutionEmitter::filterOperand() {
  bool isPacked = plan.filter.kind == MatrixAccess::Panels;
  int64_t width =
      isPacked ? MatmulOp::getPanelColumns(plan.filters) : kPanelColumns;
  int64_t columns =
      isPacked ? llvm::alignTo(plan.filters, width) : plan.filters;
  int64_t depth = plan.getDepth();
  if (isPacked)
    depth = plan.packing.getDepth(depth);
  MatrixSource source;
  source.offset = [=](KernelBuilder &b, Value group) {
    return b.mul(group, b.index(columns * depth));
  };
  source.panelStride = b.index(width * depth);
  source.element = [this](KernelBuilder &b, Value group, Value column,
                          Value k) {
    return filterElement(b, group, column, k);
  };
  return makeOperand(frame, plan.filter, source, width);
}

/// A filter that is computed where it is read.
Value ConvolutionEmitter::filterElement(KernelBuilder &b, Value group,
                                        Value column, Value k) {
  SmallVector<Value> at = splitDepth(b, plan.op, plan.channels, k);
  Value first = b.mul(group, b.index(plan.filters));
  at.insert(at.begin(), b.add(first, column));
  return frame.elements.element(b, frame.loc, plan.op.getFilter(), at);
}

SmallVector<Value> ConvolutionEmitter::resultIndices(KernelBuilder &b,
                                                     Value group, Value row,
                                                     Value column) {
  SmallVector<Value> at(plan.pixels.size() - 1, b.index(0));
  if (plan.rowsArePositions)
    at.push_back(row);
  else
    at = b.delinearize(row, pixelSizes(b));
  at.push_back(b.add(b.mul(group, b.index(plan.filters)), column));
  return at;
}

void ConvolutionEmitter::emit() {
  Contraction c{b.index(plan.groups), size(b, plan.rows), b.index(plan.filters),
                b.index(plan.inUnits(plan.getDepth()))};
  c.lhs = patchOperand();
  c.rhs = filterOperand();
  c.arithmetic = {plan.sum, plan.patches.isUnsigned, plan.filter.isUnsigned,
                  plan.packing};
  c.blocking = *plan.blocking;
  c.unit = {frame.options.vectorBytes, frame.options.hasPairProducts};
  addResults(c, frame, [this](KernelBuilder &b, Value batch, Value i, Value j) {
    return resultIndices(b, batch, i, j);
  });
  emitContraction(b, c, frame.firstTask, frame.lastTask, frame.scratch);
}

FailureOr<TaskPlan> planConvolution(FusedOp region) {
  ConvolutionPlan plan(region);
  if (!plan.op.getChannelsLast())
    return region.emitOpError("has a convolution with the channels first");
  Type packed = plan.packsPatches() ? plan.patches.elementType : Type();
  return plan.blocking.describe(
      {plan.getTasks(),
       contractionScratchBytes(*plan.blocking, plan.sum, packed,
                               plan.filter.getPackedType())});
}

LogicalResult emitConvolution(OpBuilder &b, KernelFrame &frame) {
  KernelBuilder builder = makeKernelBuilder(b, frame.loc);
  ConvolutionEmitter(builder, frame).emit();
  return success();
}

} // namespace tcc::cpu
