//===- ConvolutionKernel.cpp - graph.conv as a contraction ----------------===//
//
// One product for each image and group: rows are filters, columns are output
// positions, k runs over the group's channels and the taps of the window.
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cpu/Convolution.h"
#include "compiler/codegen/kernel/MatrixKernel.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace tcc::graph;
using tcc::cpu::KernelBuilder;

namespace tcc::codegen {

namespace {

struct ConvolutionPlan {
  ConvOp op;
  MatrixAccess filter, patches;
  int64_t groups, filters, channels, taps; // of one group, but for groups
  Extents outputs;                         // spatial
  AffineExpr batch, positions;
  bool positionsOnly;
  cpu::Blocking blocking;
  Type sum;

  explicit ConvolutionPlan(FusedOp region);
  AffineExpr getTasks() const {
    AffineExpr blocks = positions.ceilDiv(blocking.n);
    return batch * llvm::divideCeil(filters, blocking.m) * blocks;
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
  channels = *getConstant(getExtent(op.getX(), 1)) / groups;
  taps = 1;
  for (int64_t extent : op.getWindow())
    taps *= extent;
  Extents extents = getExtents(op.getResult());
  batch = extents[0] * groups;
  outputs.assign(extents.begin() + 2, extents.end());
  positions = getNumElements(outputs, context);
  positionsOnly = readsPositionsOnly(region, 2, extents.size());
  sum = getSumType(getElementTypeOrSelf(op.getResult()));
  blocking = cpu::chooseBlocking(
      {getConstant(batch), filters, getConstant(positions), channels * taps},
      taps);
  filter =
      getAccess(op.getFilter(), op.getPackedFilter() ? MatrixAccess::Panels
                                                     : MatrixAccess::InPlace);
  filter.laneStride = getAffineConstantExpr(channels * taps, context);
  filter.kStride = getAffineConstantExpr(1, context);
  patches = getAccess(op.getX(), MatrixAccess::Columns);
  patches.laneStride = getAffineConstantExpr(1, context);
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
  SmallVector<Value> outputSizes(KernelBuilder &b) {
    return llvm::map_to_vector(plan.outputs,
                               [&](AffineExpr e) { return size(b, e); });
  }
  cpu::MatrixOperand filterOperand();
  cpu::MatrixOperand patchOperand();
  SmallVector<cpu::WindowDimension> windowDimensions();
  Value patchElement(KernelBuilder &b, Value batch, Value position, Value k);
  void emitEpilogue(KernelBuilder &b, Value sum, Value batch, Value i, Value j);
};

} // namespace

cpu::MatrixOperand ConvolutionEmitter::filterOperand() {
  int64_t k = plan.channels * plan.taps, groups = plan.groups;
  bool isPacked = plan.filter.kind == MatrixAccess::Panels;
  int64_t rows =
      isPacked ? llvm::alignTo(plan.filters, cpu::panelRows) : plan.filters;
  MatrixSource source;
  source.offset = [=](KernelBuilder &b, Value batch) {
    return b.mul(b.rem(batch, b.index(groups)), b.index(rows * k));
  };
  source.panelStride = b.index(cpu::panelRows * k);
  source.element = [this](KernelBuilder &b, Value batch, Value row, Value k) {
    Value group = b.rem(batch, b.index(plan.groups));
    SmallVector<Value> sizes = {b.index(plan.channels)};
    for (int64_t extent : plan.op.getWindow())
      sizes.push_back(b.index(extent));
    SmallVector<Value> at = b.delinearize(k, sizes);
    Value first = b.mul(group, b.index(plan.filters));
    at.insert(at.begin(), b.add(first, row));
    return frame.elements.element(b, frame.loc, plan.op.getFilter(), at);
  };
  return makeOperand(frame, plan.filter, source, cpu::panelRows);
}

cpu::MatrixOperand ConvolutionEmitter::patchOperand() {
  if (!plan.patches.input)
    return cpu::packedElements(
        [this](KernelBuilder &b, Value batch, Value position, Value k) {
          return patchElement(b, batch, position, k);
        },
        plan.patches.elementType, /*lanesAdjacent=*/true);
  cpu::ConvolutionInput input{getMemory(frame, plan.patches.input), b.index(0),
                              b.index(plan.channels), windowDimensions()};
  return cpu::gatheredPatches(input, {frame.options.vectorBytes});
}

/// A dimension that windows do not cover is part of the one before it: the taps
/// of that are so many elements apart, and rows are longer.
SmallVector<cpu::WindowDimension> ConvolutionEmitter::windowDimensions() {
  ConvOp op = plan.op;
  SmallVector<cpu::WindowDimension> dimensions;
  for (auto [i, output] : llvm::enumerate(plan.outputs)) {
    AffineExpr input = getExtent(op.getX(), 2 + i);
    int64_t window = op.getWindow()[i], stride = op.getStrides()[i];
    int64_t dilation = op.getDilations()[i], pad = op.getPadLow()[i];
    std::optional<int64_t> count = getConstant(input);
    bool isWhole = window == 1 && pad == 0 && getConstant(output) == count;
    if (isWhole && count && !dimensions.empty() &&
        (*count == 1 || dimensions.back().stride == 1)) {
      cpu::WindowDimension &outer = dimensions.back();
      outer.input = b.mul(outer.input, b.index(*count));
      outer.output = b.mul(outer.output, b.index(*count));
      outer.padBegin = b.mul(outer.padBegin, b.index(*count));
      outer.dilation *= *count;
      continue;
    }
    dimensions.push_back({size(b, input), size(b, output), b.index(window),
                          stride, dilation, b.index(pad)});
  }
  return dimensions;
}

/// An input that is computed where it is read; zero outside.
Value ConvolutionEmitter::patchElement(KernelBuilder &b, Value batch,
                                       Value position, Value k) {
  ConvOp op = plan.op;
  SmallVector<Value> sizes = {b.index(plan.channels)};
  for (int64_t extent : op.getWindow())
    sizes.push_back(b.index(extent));
  SmallVector<Value> tap = b.delinearize(k, sizes);
  SmallVector<Value> output = b.delinearize(position, outputSizes(b));
  Value groups = b.index(plan.groups);
  Value channel =
      b.add(b.mul(b.rem(batch, groups), b.index(plan.channels)), tap[0]);
  SmallVector<Value> at = {b.div(batch, groups), channel};
  Value inside = b.create<arith::ConstantIntOp>(1, 1);
  for (size_t i = 0; i < output.size(); ++i) {
    Value begin = b.sub(b.mul(output[i], b.index(op.getStrides()[i])),
                        b.index(op.getPadLow()[i]));
    Value x = b.add(begin, b.mul(tap[1 + i], b.index(op.getDilations()[i])));
    Value valid = b.create<arith::CmpIOp>(arith::CmpIPredicate::ult, x,
                                          size(b, getExtent(op.getX(), 2 + i)));
    inside = b.create<arith::AndIOp>(inside, valid);
    at.push_back(x);
  }
  Type type = plan.patches.elementType;
  return b.choose(
      inside, type,
      [&] { return frame.elements.element(b, frame.loc, op.getX(), at); },
      [&] { return b.zero(type); });
}

void ConvolutionEmitter::emitEpilogue(KernelBuilder &b, Value sum, Value batch,
                                      Value i, Value j) {
  Value groups = b.index(plan.groups);
  Value first = b.mul(b.rem(batch, groups), b.index(plan.filters));
  SmallVector<Value> at = {b.div(batch, groups), b.add(first, i)};
  if (plan.positionsOnly) {
    at.append(plan.outputs.size() - 1, b.index(0));
    at.push_back(j);
  } else {
    at.append(b.delinearize(j, outputSizes(b)));
  }
  emitResults(b, frame, sum, at);
}

void ConvolutionEmitter::emit() {
  cpu::Contraction c{size(b, plan.batch), b.index(plan.filters),
                     size(b, plan.positions),
                     b.index(plan.channels * plan.taps)};
  c.lhs = filterOperand();
  c.rhs = patchOperand();
  c.arithmetic = {plan.sum, plan.filter.isUnsigned, plan.patches.isUnsigned};
  c.blocking = plan.blocking;
  c.unit = {frame.options.vectorBytes};
  c.epilogue = [this](KernelBuilder &b, Value sum, Value batch, Value i,
                      Value j) { emitEpilogue(b, sum, batch, i, j); };
  cpu::emitContraction(b, c, frame.firstTask, frame.lastTask, frame.scratch);
}

FailureOr<TaskPlan> planConvolution(FusedOp region) {
  ConvolutionPlan plan(region);
  return TaskPlan{plan.getTasks(),
                  cpu::contractionScratchBytes(plan.blocking, plan.sum,
                                               plan.filter.getPackedType(),
                                               plan.patches.getPackedType())};
}

LogicalResult emitConvolution(OpBuilder &b, KernelFrame &frame) {
  KernelBuilder builder = makeKernelBuilder(b, frame.loc);
  ConvolutionEmitter(builder, frame).emit();
  return success();
}

} // namespace tcc::codegen
