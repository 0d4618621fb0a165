#include "compiler/passes/graph/fusion/LibraryWork.h"

#include "runtime/package/LibraryRules.h"

using namespace mlir;
using namespace tcc::graph;
using tcc::format::DType;
using tcc::format::StepKind;

namespace tcc::fusion {

//===----------------------------------------------------------------------===//
// What the rules are asked
//===----------------------------------------------------------------------===//

static std::optional<DType> getFloat(Type type) {
  if (type.isF32())
    return DType::f32;
  if (type.isF64())
    return DType::f64;
  if (type.isF16())
    return DType::f16;
  if (type.isBF16())
    return DType::bf16;
  return std::nullopt;
}

/// False if no library has an operand of the type or of so many axes.
static bool summarize(const WorkOperand &operand, runtime::StridedView &view) {
  std::optional<DType> dtype = getFloat(operand.elementType);
  if (!dtype || operand.extents.size() > runtime::kMaxLibraryAxes)
    return false;
  view.dtype = *dtype;
  view.rank = operand.extents.size();
  for (uint32_t i = 0; i < view.rank; ++i) {
    view.extents[i] =
        getConstant(operand.extents[i]).value_or(runtime::kUnknownSize);
    view.strides[i] =
        getConstant(operand.strides[i]).value_or(runtime::kUnknownSize);
  }
  return true;
}

bool isOfLibrary(const LibraryWork &work) {
  auto list = [](ArrayRef<int64_t> values) {
    return std::vector<int64_t>(values.begin(), values.end());
  };
  runtime::LibraryWork summary;
  summary.kind = work.kind;
  summary.tf32 = work.tf32;
  summary.window = {list(work.padLow), list(work.padHigh), list(work.strides),
                    list(work.dilations)};
  if (!summarize(work.lhs, summary.lhs) || !summarize(work.rhs, summary.rhs) ||
      !summarize(work.result, summary.result))
    return false;
  for (const WorkStep &step : work.steps) {
    runtime::LibraryStep &last = summary.steps.emplace_back();
    last.kind = step.kind;
    last.factor = step.factor;
    if (step.operand && !summarize(*step.operand, last.operand))
      return false;
  }
  return isWellFormed(summary) && runtime::isOfLibrary(summary);
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

/// Whether `operand` is a vector along `axis`, whatever its sizes are.
static bool isVectorAlong(const WorkOperand &operand, size_t axis) {
  runtime::StridedView view;
  return summarize(operand, view) && runtime::isVectorAlong(view, axis);
}

void addSteps(LibraryWork &work, const Epilogue &epilogue,
              ArrayRef<WorkOperand> addends,
              const std::optional<WorkOperand> &other,
              const std::optional<WorkOperand> &stored) {
  if (epilogue.scale != 1)
    work.steps.push_back({StepKind::scale, epilogue.scale});
  size_t axis = runtime::axisOf(runtime::OperandForm::columns, work.kind);
  const WorkOperand *bias = llvm::find_if(addends, [&](const WorkOperand &one) {
    return isVectorAlong(one, axis);
  });
  for (const WorkOperand &addend : addends)
    if (&addend != bias)
      work.steps.push_back({StepKind::add, 1, addend});
  if (bias != addends.end())
    work.steps.push_back({StepKind::bias, 1, *bias});
  if (stored)
    work.steps.push_back({StepKind::store, 1, *stored});
  if (epilogue.activation)
    work.steps.push_back({*getFunction(epilogue.activation), 1, other});
}

WorkOperand makeVector(StepKind kind, const LibraryWork &work, Value tensor,
                       Type elementType) {
  MLIRContext *context = elementType.getContext();
  AffineExpr zero = getAffineConstantExpr(0, context);
  Extents strides(work.result.extents.size(), zero);
  strides[runtime::axisOf(runtime::traitsOf(kind).form, work.kind)] =
      getAffineConstantExpr(1, context);
  return {tensor, elementType, zero, work.result.extents, strides};
}

bool isTf32Allowed(Operation *op) {
  auto precision = dyn_cast<PrecisionOpInterface>(op);
  return precision && getElementTypeOrSelf(op->getOperand(0)).isF32() &&
         precision.isTf32Allowed();
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

std::optional<LibraryWork>
describeLibraryWork(Operation *anchor, ArrayRef<Value> results,
                    function_ref<bool(Value)> isInput) {
  auto work = describeProduct(anchor, results, isInput);
  if (work && isOfLibrary(*work))
    return work;
  if (results.size() != 1)
    return std::nullopt;
  work = describeConvolution(anchor, results.front(), isInput);
  return work && isOfLibrary(*work) ? work : std::nullopt;
}

} // namespace tcc::fusion
