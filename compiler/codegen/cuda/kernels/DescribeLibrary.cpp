#include "compiler/codegen/cuda/kernels/DescribeLibrary.h"

#include "compiler/codegen/region/RegionFrame.h"
#include "compiler/passes/graph/fusion/LibraryWork.h"
#include "runtime/package/LibraryRules.h"

using namespace mlir;
using namespace tcc;
using namespace tcc::graph;

namespace tcc::cuda {

/// The position of the buffer that `tensor` lies in; results follow inputs.
static uint32_t getPosition(Value tensor, FusedOp region) {
  if (auto argument = dyn_cast<BlockArgument>(tensor))
    return argument.getArgNumber();
  ValueRange results = region.getBody().front().getTerminator()->getOperands();
  auto found = llvm::find(results, tensor);
  return region.getBody().getNumArguments() +
         std::distance(results.begin(), found);
}

static exec::OperandAttr makeOperand(const fusion::WorkOperand &operand,
                                     FusedOp region) {
  SmallVector<AffineExpr> place = {operand.offset};
  llvm::append_range(place, operand.extents);
  llvm::append_range(place, operand.strides);
  MLIRContext *context = region.getContext();
  return exec::OperandAttr::get(context, getPosition(operand.tensor, region),
                                operand.elementType,
                                makeSizeMap(place, context));
}

static exec::StepAttr makeStep(const fusion::WorkStep &step, FusedOp region) {
  MLIRContext *context = region.getContext();
  FloatAttr factor;
  if (step.kind == format::StepKind::scale)
    factor = FloatAttr::get(Float64Type::get(context), step.factor);
  exec::OperandAttr operand;
  if (step.operand)
    operand = makeOperand(*step.operand, region);
  return exec::StepAttr::get(context, step.kind, factor, operand);
}

static exec::LibraryWorkAttr makeWork(const fusion::LibraryWork &work,
                                      FusedOp region) {
  Builder builder(region.getContext());
  SmallVector<Attribute> steps;
  for (const fusion::WorkStep &step : work.steps)
    steps.push_back(makeStep(step, region));
  exec::WindowAttr window;
  if (!work.strides.empty())
    window = exec::WindowAttr::get(
        region.getContext(), builder.getDenseI64ArrayAttr(work.padLow),
        builder.getDenseI64ArrayAttr(work.padHigh),
        builder.getDenseI64ArrayAttr(work.strides),
        builder.getDenseI64ArrayAttr(work.dilations));
  return exec::LibraryWorkAttr::get(
      region.getContext(), work.kind, makeOperand(work.lhs, region),
      makeOperand(work.rhs, region), makeOperand(work.result, region),
      steps.empty() ? ArrayAttr() : builder.getArrayAttr(steps), work.tf32,
      window);
}

static std::optional<fusion::LibraryWork> findWork(FusedOp region) {
  Operation *anchor = codegen::getAnchor(region);
  SmallVector<Value> results(
      region.getBody().front().getTerminator()->getOperands());
  if (!anchor || results.empty())
    return std::nullopt;
  return fusion::describeLibraryWork(
      anchor, results, [](Value value) { return isa<BlockArgument>(value); });
}

void describeForLibrary(FusedOp region, KernelInfo &info) {
  if (auto work = findWork(region))
    info.library = makeWork(*work, region);
}

bool canLibraryOverwrite(FusedOp region, unsigned result, unsigned input) {
  auto work = findWork(region);
  if (!work)
    return true;
  Value written = region.getBody().front().getTerminator()->getOperand(result);
  return llvm::none_of(work->steps, [&](const fusion::WorkStep &step) {
    bool isInPlace = runtime::traitsOf(step.kind).readsInPlace &&
                     written == work->result.tensor;
    return step.operand && !isInPlace &&
           getPosition(step.operand->tensor, region) == input;
  });
}

} // namespace tcc::cuda
