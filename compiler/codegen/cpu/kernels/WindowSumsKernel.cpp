//===- WindowSumsKernel.cpp - Filter gradients of narrow groups -----------===//

#include "compiler/codegen/cpu/kernels/MatrixKernel.h"
#include "compiler/codegen/cpu/tile/WindowSums.h"

using namespace mlir;
using namespace tcc::codegen;
using namespace tcc::graph;

namespace tcc::cpu {

/// What `operand` is a view of, which lies in memory.
static Value getInput(Value operand) {
  while (auto reshape = operand.getDefiningOp<ReshapeOp>())
    operand = reshape.getX();
  return operand;
}

static FailureOr<ConvFilterGradientOp> getOp(FusedOp region) {
  auto op = dyn_cast_or_null<ConvFilterGradientOp>(getAnchor(region));
  if (!op)
    return region.emitOpError("sums nothing under a window");
  for (Value operand : op->getOperands())
    if (!isa<BlockArgument>(getInput(operand)))
      return op.emitOpError("reads what the kernel computes");
  return op;
}

FailureOr<TaskPlan> planWindowSumsKernel(FusedOp region, ArrayRef<SymbolAttr>) {
  FailureOr<ConvFilterGradientOp> op = getOp(region);
  if (failed(op))
    return failure();
  int64_t tasks =
      llvm::divideCeil(op->getType().getDimSize(0), kFiltersPerTask);
  for (int64_t extent : op->getWindow().drop_back())
    tasks *= extent;
  tasks *= llvm::divideCeil(op->getWindow().back(), kTapsPerTask);
  return TaskPlan{getAffineConstantExpr(tasks, region.getContext()), 0};
}

LogicalResult emitWindowSumsKernel(OpBuilder &builder, KernelFrame &frame) {
  FailureOr<ConvFilterGradientOp> found = getOp(frame.region);
  if (failed(found))
    return failure();
  ConvFilterGradientOp op = *found;
  KernelBuilder b = makeKernelBuilder(builder, frame.loc);
  ArrayRef<int64_t> x = op.getX().getType().getShape();
  ArrayRef<int64_t> gradient = op.getGradient().getType().getShape();
  WindowSums sums;
  sums.images = b.index(x.front());
  sums.filters = b.index(gradient.back());
  for (size_t i = 0; i < op.getWindow().size(); ++i)
    sums.dimensions.push_back({b.index(x[1 + i]), b.index(gradient[1 + i]),
                               b.index(op.getWindow()[i]), op.getStrides()[i],
                               op.getDilations()[i],
                               b.index(op.getPadLow()[i])});
  sums.x = getMemory(frame, getInput(op.getX()));
  sums.gradient = getMemory(frame, getInput(op.getGradient()));
  sums.sumType = getSumType(op.getType().getElementType());
  Type type = sums.sumType;
  sums.join = [type](KernelBuilder &b, Value sum, Value x, Value gradient) {
    return b.multiplyAdd(b.widen(x, type, /*isUnsigned=*/false),
                         b.widen(gradient, type, /*isUnsigned=*/false), sum);
  };
  sums.store = [&frame](KernelBuilder &b, Value sum, Value filter,
                        ValueRange tap, Value groupChannel) {
    SmallVector<Value> at = {filter};
    llvm::append_range(at, tap);
    at.push_back(groupChannel);
    emitResults(b, frame, sum, at);
  };
  sums.unit = {frame.options.vectorBytes};
  sums.groupSize = gradient.back() / int64_t(op.getGroups());
  sums.groupInputs = x.back() / int64_t(op.getGroups());
  emitWindowSums(b, sums, frame.firstTask, frame.lastTask);
  return success();
}

} // namespace tcc::cpu
