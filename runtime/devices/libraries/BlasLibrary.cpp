// Plans products for cuBLASLt. Its matrices are column-major: where columns of
// a result are adjacent, the transposed product is asked for, result' = rhs' *
// lhs', and a bias runs along its rows. That it has the work, and its matrices
// such layouts, LibraryRules.h has made sure of.

#include "runtime/devices/libraries/BlasLibrary.h"

#include "runtime/package/LibraryRules.h"

#include <algorithm>
#include <vector>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::runtime::cuda;
using format::DType;
using format::StepKind;

namespace {

/// A stored matrix: column-major, of `rows` adjacent elements.
struct Layout {
  int64_t rows, columns, leading, batchStride;
};

/// One of two factors.
struct Factor {
  Layout layout;
  bool isTransposed;
};

/// `view`, [batch, rows, columns], as it is stored: by columns, or transposed
/// by rows.
Layout layOut(const StridedView &view, bool isOfRows) {
  size_t inner = isOfRows ? 2 : 1, outer = isOfRows ? 1 : 2;
  return {view.extents[inner], view.extents[outer],
          leadingOf(view, isOfRows).value_or(0), view.strides[0]};
}

/// A factor of a product that is transposed as a whole, or not. It is stored in
/// either order, in that of the product if it can be.
Factor layOutFactor(const StridedView &view, bool isTransposed) {
  bool isStoredSo = leadingOf(view, isTransposed).has_value();
  return {layOut(view, isStoredSo == isTransposed), !isStoredSo};
}

/// The product in the library's words: d = a * b + c.
struct Form {
  Factor a, b;
  Layout c, d;
};

Form makeForm(const LibraryWork &work, bool isTransposed) {
  const LibraryStep *addend = findStep(work, StepKind::add);
  Layout d = layOut(work.result, isTransposed);
  Layout c = addend ? layOut(addend->operand, isTransposed) : d;
  return {layOutFactor(isTransposed ? work.rhs : work.lhs, isTransposed),
          layOutFactor(isTransposed ? work.lhs : work.rhs, isTransposed), c, d};
}

std::optional<int> typeOf(DType dtype) {
  switch (dtype) {
  case DType::f32:
    return kF32;
  case DType::f64:
    return kF64;
  case DType::f16:
    return kF16;
  case DType::bf16:
    return kBF16;
  default:
    return std::nullopt;
  }
}

BlasCompute computeOf(const LibraryWork &product) {
  if (product.result.dtype == DType::f64)
    return kCompute64F;
  return product.tf32 ? kCompute32FFastTF32 : kCompute32F;
}

/// The bit of a step in the library's epilogue; none for those that are no part
/// of it, as factors and addends, or of no row that LibraryRules.h has of a
/// product. Sums are asked for of transposed products alone.
uint32_t epilogueOf(StepKind kind) {
  switch (kind) {
  case StepKind::bias:
    return kEpilogueBias;
  case StepKind::relu:
    return kEpilogueRelu;
  case StepKind::gelu_tanh:
    return kEpilogueGelu;
  case StepKind::gelu_tanh_gradient:
    return kEpilogueGeluGradient | kEpilogueSum;
  case StepKind::store:
    return kEpilogueSum;
  case StepKind::sum_lhs:
    return kEpilogueSumsOfB;
  case StepKind::sum_rhs:
    return kEpilogueSumsOfA;
  case StepKind::scale:
  case StepKind::add:
  case StepKind::silu:
  case StepKind::sigmoid:
  case StepKind::tanh:
  case StepKind::gelu:
    break;
  }
  return 0;
}

uint32_t epilogueOf(const LibraryWork &work) {
  uint32_t epilogue = 0;
  for (const LibraryStep &step : work.steps)
    epilogue |= epilogueOf(step.kind);
  return epilogue ? epilogue : kEpilogueDefault;
}

/// What an operand of a step is to the library.
enum class Pointer { None, Addend, Bias, Sum };

Pointer pointerOf(const LibraryStep &step) {
  switch (traitsOf(step.kind).form) {
  case OperandForm::none:
    return Pointer::None;
  case OperandForm::elements:
    return step.kind == StepKind::add ? Pointer::Addend : Pointer::Sum;
  case OperandForm::rows:
  case OperandForm::columns:
    return Pointer::Bias;
  }
  return Pointer::None;
}

//===----------------------------------------------------------------------===//
// Plans
//===----------------------------------------------------------------------===//

class BlasPlan final : public LibraryPlan {
public:
  BlasPlan(const CublasLt &table, BlasHandle handle, const LibraryWork &work)
      : table(table), handle(handle), product(work),
        isTransposed(isResultOfRows(work)) {}
  ~BlasPlan() override;

  /// False if the library has no way for it from `first` on.
  Result<bool> prepare(void *workspace, size_t bytes, size_t first);
  size_t way() const override { return chosenWay; }
  Status enqueue(const LibraryOperands &operands, StreamHandle stream) override;

private:
  Status check(BlasError error, std::string_view doing) const {
    if (error == kBlasSuccess)
      return Status();
    return makeError(Code::Device, doing, ": ", table.getStatusString(error),
                     " (cuBLASLt status ", error, ")");
  }
  Status describe(const Form &form);
  BlasError describeProduct(const Form &form);
  BlasError createLayout(LayoutHandle &handle, DType dtype,
                         const Layout &layout);
  Result<bool> choose(size_t bytes, size_t first);
  BlasError place(const LibraryOperands &operands);
  BlasError setPreferences(PreferenceHandle preference, size_t bytes);
  bool isDouble() const { return product.result.dtype == DType::f64; }

  const CublasLt &table;
  BlasHandle handle;
  LibraryWork product;
  bool isTransposed;
  ProductHandle description = nullptr;
  LayoutHandle a = nullptr, b = nullptr, c = nullptr, d = nullptr;
  BlasHeuristic chosen = {};
  size_t chosenWay = 0;
  void *workspace = nullptr;
};

} // namespace

BlasPlan::~BlasPlan() {
  for (LayoutHandle layout : {a, b, c, d})
    if (layout)
      table.matrixLayoutDestroy(layout);
  if (description)
    table.matmulDescDestroy(description);
}

BlasError BlasPlan::createLayout(LayoutHandle &handle, DType dtype,
                                 const Layout &layout) {
  BlasError error = table.matrixLayoutCreate(
      &handle, *typeOf(dtype), layout.rows, layout.columns, layout.leading);
  auto set = [&](int attribute, auto value) {
    if (error == kBlasSuccess)
      error = table.matrixLayoutSetAttribute(handle, attribute, &value,
                                             sizeof(value));
  };
  set(kLayoutBatch, static_cast<int32_t>(product.result.extents[0]));
  set(kLayoutBatchStride, layout.batchStride);
  return error;
}

BlasError BlasPlan::describeProduct(const Form &form) {
  BlasError error = table.matmulDescCreate(&description, computeOf(product),
                                           isDouble() ? kF64 : kF32);
  auto set = [&](int attribute, auto value) {
    if (error == kBlasSuccess)
      error = table.matmulDescSetAttribute(description, attribute, &value,
                                           sizeof(value));
  };
  set(kProductTransposeA, int32_t(form.a.isTransposed ? kTransposed : kPlain));
  set(kProductTransposeB, int32_t(form.b.isTransposed ? kTransposed : kPlain));
  set(kProductEpilogue, epilogueOf(product));
  for (const LibraryStep &step : product.steps) {
    // Ways are chosen for an address that is aligned so.
    uintptr_t example = step.operand.alignment;
    Pointer pointer = pointerOf(step);
    if (pointer == Pointer::Sum) {
      set(kProductSumLeading, layOut(step.operand, isTransposed).leading);
      set(kProductSum, example);
    }
    if (pointer == Pointer::Bias && traitsOf(step.kind).isWritten)
      set(kProductBias, example);
  }
  return error;
}

Status BlasPlan::describe(const Form &form) {
  DType factors = product.lhs.dtype, results = product.result.dtype;
  BlasError error = describeProduct(form);
  if (error == kBlasSuccess)
    error = createLayout(a, factors, form.a.layout);
  if (error == kBlasSuccess)
    error = createLayout(b, factors, form.b.layout);
  if (error == kBlasSuccess)
    error = createLayout(c, results, form.c);
  if (error == kBlasSuccess)
    error = createLayout(d, results, form.d);
  return check(error, "describing a matrix product");
}

BlasError BlasPlan::setPreferences(PreferenceHandle preference, size_t bytes) {
  BlasError error = kBlasSuccess;
  auto set = [&](int attribute, auto value) {
    if (error == kBlasSuccess)
      error = table.matmulPreferenceSetAttribute(preference, attribute, &value,
                                                 sizeof(value));
  };
  const StridedView &first = isTransposed ? product.rhs : product.lhs;
  const StridedView &second = isTransposed ? product.lhs : product.rhs;
  const LibraryStep *add = findStep(product, StepKind::add);
  uint32_t stored = product.result.alignment;
  // A bias is read as vectors as the result is stored.
  if (const LibraryStep *bias = findStep(product, StepKind::bias))
    stored = std::min(stored, bias->operand.alignment);
  set(kPreferredWorkspace, static_cast<uint64_t>(bytes));
  set(kPreferredReductions, kReduceInComputeType);
  set(kAlignmentOfA, first.alignment);
  set(kAlignmentOfA + 1, second.alignment);
  set(kAlignmentOfA + 2, add ? add->operand.alignment : stored);
  set(kAlignmentOfA + 3, stored);
  return error;
}

Result<bool> BlasPlan::choose(size_t bytes, size_t first) {
  if (first >= kMaxWays)
    return false;
  PreferenceHandle preference = nullptr;
  BlasError error = table.matmulPreferenceCreate(&preference);
  if (error == kBlasSuccess)
    error = setPreferences(preference, bytes);
  // The first alone, or all: what is asked for may change what comes.
  std::vector<BlasHeuristic> ways(first == 0 ? 1 : kMaxWays);
  int count = 0;
  if (error == kBlasSuccess)
    error = table.matmulAlgoGetHeuristic(handle, description, a, b, c, d,
                                         preference, int(ways.size()),
                                         ways.data(), &count);
  if (preference)
    table.matmulPreferenceDestroy(preference);
  if (error == kBlasNotSupported || error == kBlasInvalidValue)
    return false;
  if (Status status = check(error, "choosing how to multiply matrices");
      !status.ok())
    return status;
  for (size_t i = first; i < size_t(count); ++i) {
    if (ways[i].state != kBlasSuccess)
      continue;
    chosen = ways[i];
    chosenWay = i;
    return true;
  }
  return false;
}

Result<bool> BlasPlan::prepare(void *memory, size_t bytes, size_t first) {
  workspace = memory;
  if (product.result.extents[0] > INT32_MAX || !typeOf(product.lhs.dtype) ||
      !typeOf(product.result.dtype))
    return false;
  if (Status status = describe(makeForm(product, isTransposed)); !status.ok())
    return status;
  return choose(bytes, first);
}

/// Addresses that are part of the description.
BlasError BlasPlan::place(const LibraryOperands &operands) {
  BlasError error = kBlasSuccess;
  for (size_t i = 0; i < product.steps.size(); ++i) {
    Pointer pointer = pointerOf(product.steps[i]);
    if (error != kBlasSuccess ||
        (pointer != Pointer::Bias && pointer != Pointer::Sum))
      continue;
    int attribute = pointer == Pointer::Bias ? kProductBias : kProductSum;
    error = table.matmulDescSetAttribute(
        description, attribute, &operands.steps[i], sizeof(operands.steps[i]));
  }
  return error;
}

Status BlasPlan::enqueue(const LibraryOperands &operands, StreamHandle stream) {
  if (BlasError error = place(operands))
    return check(error, "describing a matrix product");
  const LibraryStep *factor = findStep(product, StepKind::scale);
  const void *addend = findOperand(product, operands, StepKind::add);
  double scale = factor ? factor->factor : 1, keep = addend ? 1 : 0;
  float narrowScale = static_cast<float>(scale);
  float narrowKeep = static_cast<float>(keep);
  const void *alpha = isDouble() ? static_cast<void *>(&scale) : &narrowScale;
  const void *beta = isDouble() ? static_cast<void *>(&keep) : &narrowKeep;
  const void *first = isTransposed ? operands.rhs : operands.lhs;
  const void *second = isTransposed ? operands.lhs : operands.rhs;
  if (!addend)
    addend = operands.result;
  return check(table.matmul(handle, description, alpha, first, a, second, b,
                            beta, addend, c, operands.result, d,
                            &chosen.algorithm, workspace, chosen.workspaceBytes,
                            stream),
               "multiplying matrices");
}

//===----------------------------------------------------------------------===//
// The library
//===----------------------------------------------------------------------===//

Result<std::unique_ptr<BlasLibrary>> BlasLibrary::open(const CublasLt &table) {
  BlasHandle handle = nullptr;
  if (BlasError error = table.create(&handle))
    return makeError(Code::Device,
                     "starting cuBLASLt: ", table.getStatusString(error));
  return std::unique_ptr<BlasLibrary>(new BlasLibrary(table, handle));
}

Result<std::unique_ptr<LibraryPlan>>
BlasLibrary::plan(const LibraryWork &product, void *workspace, size_t bytes,
                  size_t first) const {
  if (!isOfLibrary(product))
    return std::unique_ptr<LibraryPlan>();
  auto plan = std::make_unique<BlasPlan>(table, handle, product);
  Result<bool> isThere = plan->prepare(workspace, bytes, first);
  if (!isThere.ok())
    return isThere.takeStatus();
  return *isThere ? std::unique_ptr<LibraryPlan>(std::move(plan)) : nullptr;
}
