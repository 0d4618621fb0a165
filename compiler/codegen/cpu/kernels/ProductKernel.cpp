//===- ProductKernel.cpp - Products of matrices as contractions -----------===//

#include "compiler/codegen/cpu/kernels/ProductPlan.h"
#include "compiler/codegen/cpu/tile/Convolution.h"
#include "compiler/codegen/cpu/tile/PackedUnit.h"
#include "compiler/codegen/region/EmitIndices.h"

using namespace mlir;
using namespace tcc::codegen;
using namespace tcc::graph;

namespace tcc::cpu {

namespace {

class ProductEmitter {
public:
  ProductEmitter(KernelBuilder &b, KernelFrame &frame)
      : b(b), frame(frame), plan(frame.region) {}
  void emit();

private:
  KernelBuilder &b;
  KernelFrame &frame;
  ProductPlan plan;

  Value size(OpBuilder &b, AffineExpr expression) {
    return frame.elements.size(b, frame.loc, expression);
  }
  SmallVector<Value> startLoops(KernelBuilder &b) {
    return SmallVector<Value>(plan.extents.size(), b.index(0));
  }
  void setLoops(KernelBuilder &b, MutableArrayRef<Value> values,
                ArrayRef<unsigned> loops, Value number);
  Value element(KernelBuilder &b, const ProductSide &side, ValueRange loops,
                Value k);
  MatrixSource makeSource(const ProductSide &side, const SidePlan &own,
                          ArrayRef<unsigned> lanes, int64_t width);
  ConvolutionInput describeWindows(const SidePlan &side);
  MatrixOperand makeWindows(const SidePlan &side);
  std::function<RunFilter(KernelBuilder &, Value)> skipZeros();
  MatrixOperand makeSide(const ProductSide &side, const SidePlan &own,
                         ArrayRef<unsigned> lanes, int64_t width);
  SmallVector<Value> resultIndices(KernelBuilder &b, Value batch, Value i,
                                   Value j);
  void emitPlanes(const Contraction &c);
  Value blockTask(Value task);
};

} // namespace

/// The values of `loops` in their iteration of that number. Those of a single
/// iteration stay zero, unless all are: elements are computed outside of the
/// loops that no index depends on.
void ProductEmitter::setLoops(KernelBuilder &b, MutableArrayRef<Value> values,
                              ArrayRef<unsigned> loops, Value number) {
  Loops longer;
  for (unsigned loop : loops)
    if (getConstant(plan.extents[loop]) != 1)
      longer.push_back(loop);
  if (longer.empty() && !loops.empty())
    longer.push_back(loops.back());
  auto sizes = llvm::map_to_vector(
      longer, [&](unsigned loop) { return size(b, plan.extents[loop]); });
  for (auto [loop, value] :
       llvm::zip_equal(longer, b.delinearize(number, sizes)))
    values[loop] = value;
}

/// An element of a side at k; zero outside of its operand.
Value ProductEmitter::element(KernelBuilder &b, const ProductSide &side,
                              ValueRange loops, Value k) {
  Value tensor = plan.op->getOperand(side.operand);
  SmallVector<Value> at = emitIndices(b, side.map, loops);
  auto read = [&] { return frame.elements.element(b, frame.loc, tensor, at); };
  SmallVector<Value> conditions;
  if (!plan.k.isMultipleOf(plan.packing.group)) // zeros fill up the last unit
    conditions.push_back(b.less(k, size(b, plan.k)));
  for (int64_t i = side.firstPadded; i < side.firstPadded + side.padded; ++i)
    // Unsigned, so that places before the operand are outside, too.
    conditions.push_back(b.create<arith::CmpIOp>(
        arith::CmpIPredicate::ult, at[i], size(b, getExtent(tensor, i))));
  if (conditions.empty())
    return read();
  Value isInside = conditions.front();
  for (Value condition : ArrayRef(conditions).drop_front())
    isInside = b.create<arith::AndIOp>(isInside, condition);
  Type type = getComputedType(tensor);
  return b.choose(isInside, type, read, [&] { return b.zero(type); });
}

MatrixSource ProductEmitter::makeSource(const ProductSide &side,
                                        const SidePlan &own,
                                        ArrayRef<unsigned> lanes,
                                        int64_t width) {
  MatrixSource source;
  source.offset = [=, &own, this](KernelBuilder &b, Value batch) {
    SmallVector<Value> loops = startLoops(b), at, strides;
    setLoops(b, loops, plan.batch, batch);
    for (unsigned loop : plan.batch) {
      at.push_back(loops[loop]);
      strides.push_back(size(b, own.walk->strides[loop]));
    }
    Value offset = b.add(size(b, own.walk->offset), b.linearize(at, strides));
    if (!own.gathered)
      return offset;
    const auto &[gather, loop, stride] = *own.gathered;
    Value index =
        emitSliceIndex(b, frame.loc, gather, loops[loop], frame.elements);
    return b.add(offset, b.mul(index, size(b, stride)));
  };
  if (side.panels)
    source.panelStride =
        size(b, plan.getUnits() * (side.panels->group * width));
  source.element = [=, &side, this](KernelBuilder &b, Value batch, Value lane,
                                    Value k) {
    SmallVector<Value> loops = startLoops(b);
    setLoops(b, loops, plan.batch, batch);
    setLoops(b, loops, lanes, lane);
    setLoops(b, loops, plan.depth, k);
    return element(b, side, loops, k);
  };
  return source;
}

ConvolutionInput ProductEmitter::describeWindows(const SidePlan &side) {
  const WindowLoops &windows = *side.windows;
  ConvolutionInput input{getMemory(frame, side.access.input),
                         size(b, getExtent(side.tensor, 0)),
                         *getConstant(plan.count(plan.batch)),
                         windows.channels,
                         {}};
  for (size_t i = 0; i < windows.strides.size(); ++i)
    input.dimensions.push_back({size(b, getExtent(side.tensor, 1 + i)),
                                size(b, plan.extents[windows.positions[1 + i]]),
                                size(b, plan.extents[windows.taps[i]]),
                                windows.strides[i], windows.dilations[i],
                                b.index(windows.padLow[i])});
  input.packing = plan.packing;
  return input;
}

MatrixOperand ProductEmitter::makeWindows(const SidePlan &side) {
  ConvolutionInput input = describeWindows(side);
  VectorUnit unit = getVectorUnit(frame.options);
  if (&side == &plan.rhs)
    return makePatchColumns(input, side.access.elementType, unit);
  if (plan.hasUnits()) {
    input.base = asUnits(input.base, plan.packing);
    input.channels /= plan.packing.group;
    input.packing = Packing();
  }
  if (plan.padded && frame.options.hasTileRegisters)
    return makePaddedWindows(input, *plan.padded);
  bool isCopied = packsPatches(side.windows->channels, plan.packing,
                               frame.options.hasTileRegisters);
  MatrixOperand operand =
      makePatches(b, input, side.access.elementType, unit, isCopied);
  operand.skipsRuns = skipZeros();
  return operand;
}

/// Runs are iterations of the outer loops of the depth. Null where not all
/// columns of a panel have the same zeros.
std::function<RunFilter(KernelBuilder &, Value)> ProductEmitter::skipZeros() {
  ArrayRef<int64_t> zeros = plan.view.zeros;
  if (zeros.empty())
    return {};
  int64_t part = *getConstant(plan.n) / int64_t(zeros.size());
  if (part % kPanelColumns != 0)
    return {};
  return [zeros, part](KernelBuilder &b, Value column) {
    auto makeBits = [&](int64_t bits) -> Value {
      return b.create<arith::ConstantIntOp>(bits, 64);
    };
    Value number = b.div(column, b.index(part)), bits = makeBits(zeros[0]);
    for (auto [i, own] : llvm::enumerate(zeros.drop_front()))
      bits = b.create<arith::SelectOp>(b.equal(number, b.index(i + 1)),
                                       makeBits(own), bits);
    return [bits](KernelBuilder &b, Value run) -> Value {
      Value place = b.createOrFold<arith::IndexCastOp>(b.getI64Type(), run);
      Value bit = b.create<arith::ShRUIOp>(bits, place);
      return b.create<arith::TruncIOp>(b.getI1Type(), bit);
    };
  };
}

MatrixOperand ProductEmitter::makeSide(const ProductSide &side,
                                       const SidePlan &own,
                                       ArrayRef<unsigned> lanes,
                                       int64_t width) {
  if (own.access.kind == MatrixAccess::Windows)
    return makeWindows(own);
  return makeOperand(frame, own.access, makeSource(side, own, lanes, width),
                     width);
}

SmallVector<Value> ProductEmitter::resultIndices(KernelBuilder &b, Value batch,
                                                 Value i, Value j) {
  SmallVector<Value> loops = startLoops(b);
  setLoops(b, loops, plan.batch, batch);
  if (plan.rowsArePositions)
    loops[plan.rows.back()] = i;
  else
    setLoops(b, loops, plan.rows, i);
  if (plan.columnsArePositions)
    loops[plan.columns.back()] = j;
  else
    setLoops(b, loops, plan.columns, j);
  return emitIndices(b, plan.view.result, loops);
}

void ProductEmitter::emit() {
  Contraction c{size(b, plan.count(plan.batch)), size(b, plan.m),
                size(b, plan.n), size(b, plan.getUnits())};
  c.lhs = makeSide(plan.view.lhs, plan.lhs, plan.rows, plan.blocking->rows);
  int64_t columns = plan.view.rhs.panels
                        ? MatmulOp::getPanelColumns(*getConstant(plan.n))
                        : kPanelColumns;
  c.rhs = makeSide(plan.view.rhs, plan.rhs, plan.columns, columns);
  c.arithmetic = {plan.sum, plan.lhs.access.isUnsigned,
                  plan.rhs.access.isUnsigned, plan.packing};
  c.blocking = *plan.blocking;
  c.unit = getVectorUnit(frame.options);
  addResults(c, frame, [this](KernelBuilder &b, Value batch, Value i, Value j) {
    return resultIndices(b, batch, i, j);
  });
  if (plan.planeRows == 0)
    return emitContraction(b, c, frame.firstTask, frame.lastTask,
                           frame.scratch);
  if (!c.usesTileRegisters())
    return emitPlanes(c);
  emitContraction(b, c, blockTask(frame.firstTask), blockTask(frame.lastTask),
                  frame.scratch);
}

/// Where tasks are those of planes, the block of the same share of them.
Value ProductEmitter::blockTask(Value task) {
  Value all = b.max(size(b, plan.getTasks()), b.index(1));
  return b.div(b.mul(task, size(b, plan.getBlockTasks())), all);
}

void ProductEmitter::emitPlanes(const Contraction &c) {
  PlaneConvolution planes{
      .window = *plan.planes,
      .taskRows = plan.planeRows,
      .input = getMemory(frame, plan.lhs.access.input),
      .images = size(b, plan.extents[plan.lhs.windows->positions.front()]),
      .weights = c.rhs.view(b, b.index(0)),
      .epilogue = c.epilogue,
      .unit = c.unit};
  emitPlaneConvolution(b, planes, frame.firstTask, frame.lastTask,
                       frame.scratch);
}

FailureOr<TaskPlan> planContractionKernel(FusedOp region,
                                          ArrayRef<SymbolAttr>) {
  auto op = dyn_cast_if_present<ProductOpInterface>(getAnchor(region));
  if (!op)
    return region.emitOpError("has no matrix product");
  ProductPlan plan(region);
  if (plan.view.sums != ProductSums::none)
    return op.emitOpError("has sums beside its product");
  return plan.describe();
}

LogicalResult emitContractionKernel(OpBuilder &b, KernelFrame &frame) {
  KernelBuilder builder = makeKernelBuilder(b, frame.loc);
  ProductEmitter(builder, frame).emit();
  return success();
}

} // namespace tcc::cpu
