// Plans products for cuBLASLt. Its matrices are column-major: where columns of
// a result are adjacent, the transposed product is asked for, result' = rhs' *
// lhs', and the bias runs along its rows.

#include "runtime/devices/libraries/BlasLibrary.h"

#include <algorithm>
#include <vector>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::runtime::cuda;
using format::DType;

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

bool isUnit(int64_t stride, int64_t extent) {
  return stride == 1 || extent == 1;
}

/// The matrix [rows, columns] with these strides, if its rows are adjacent.
std::optional<Layout> layOut(int64_t rows, int64_t rowStride, int64_t columns,
                             int64_t columnStride, int64_t batchStride) {
  int64_t leading = columns == 1 ? rows : columnStride;
  if (!isUnit(rowStride, rows) || leading < rows)
    return std::nullopt;
  return Layout{rows, columns, leading, batchStride};
}

/// The same, stored in either order.
std::optional<Factor> layOutFactor(int64_t rows, int64_t rowStride,
                                   int64_t columns, int64_t columnStride,
                                   int64_t batchStride) {
  if (auto layout = layOut(rows, rowStride, columns, columnStride, batchStride))
    return Factor{*layout, false};
  if (auto layout = layOut(columns, columnStride, rows, rowStride, batchStride))
    return Factor{*layout, true};
  return std::nullopt;
}

/// The product in the library's words: d = a * b + c.
struct Form {
  Factor a, b;
  Layout c, d;
  std::optional<Layout> sum; ///< a second result, or another input
};

std::optional<Form> transpose(const MatrixProduct &p) {
  auto a = layOutFactor(p.n, p.rhs.column, p.k, p.rhs.row, p.rhs.batch);
  auto b = layOutFactor(p.k, p.lhs.column, p.m, p.lhs.row, p.lhs.batch);
  auto d = layOut(p.n, p.result.column, p.m, p.result.row, p.result.batch);
  auto c = d;
  if (p.addend)
    c = layOut(p.n, p.addend->column, p.m, p.addend->row, p.addend->batch);
  std::optional<Layout> sum;
  if (p.sum)
    sum = layOut(p.n, p.sum->column, p.m, p.sum->row, p.sum->batch);
  if (!a || !b || !c || !d || !sum != !p.sum)
    return std::nullopt;
  return Form{*a, *b, *c, *d, sum};
}

std::optional<Form> keepOrder(const MatrixProduct &p) {
  auto a = layOutFactor(p.m, p.lhs.row, p.k, p.lhs.column, p.lhs.batch);
  auto b = layOutFactor(p.k, p.rhs.row, p.n, p.rhs.column, p.rhs.batch);
  auto d = layOut(p.m, p.result.row, p.n, p.result.column, p.result.batch);
  auto c = d;
  if (p.addend)
    c = layOut(p.m, p.addend->row, p.n, p.addend->column, p.addend->batch);
  if (!a || !b || !c || !d || p.hasBias || p.sum)
    return std::nullopt;
  return Form{*a, *b, *c, *d, std::nullopt};
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

/// Whether cublasLt.h allows the sum that gelu is of, in both directions: a
/// leading dimension of a multiple of 8, the result's type, and an address as
/// aligned as it was when a way was chosen. One matrix; a gradient has no bias.
bool isSumPossible(const MatrixProduct &product, const Layout &sum) {
  constexpr int64_t kMultiple = 8;
  constexpr uint32_t kBytes = 16;
  bool isGradient =
      product.activation == format::Activation::gelu_tanh_gradient;
  bool isKnown = isGradient
                     ? !product.hasBias && !product.addend
                     : product.activation == format::Activation::gelu_tanh;
  return isKnown && product.batch == 1 && sum.leading % kMultiple == 0 &&
         product.sum->alignment >= kBytes &&
         product.sum->dtype == product.result.dtype;
}

bool sumsA(const MatrixProduct &product, bool isTransposed) {
  return product.sumsLhs != isTransposed;
}

/// Sums over k are stored where a bias would be read, in the result's type, as
/// cublasLt.h documents of a bias' gradient. Whether a factor scales them it
/// does not say. Tests of nvmath-python know of a plain A and a transposed B
/// alone: of what lies with its depth outermost.
bool areDepthSumsPossible(const MatrixProduct &product, const Form &form,
                          bool isTransposed) {
  bool isOutermost =
      sumsA(product, isTransposed) ? !form.a.isTransposed : form.b.isTransposed;
  return isOutermost && !product.hasBias && !product.sum &&
         product.scale == 1 && product.batch == 1 &&
         product.activation == format::Activation::none &&
         product.depthSums->dtype == product.result.dtype;
}

BlasCompute computeOf(const MatrixProduct &product) {
  if (product.result.dtype == DType::f64)
    return kCompute64F;
  return product.tf32 ? kCompute32FFastTF32 : kCompute32F;
}

uint32_t epilogueOf(const MatrixProduct &product, bool isTransposed) {
  uint32_t epilogue = product.hasBias ? kEpilogueBias : 0;
  if (product.activation == format::Activation::relu)
    epilogue += kEpilogueRelu;
  if (product.activation == format::Activation::gelu_tanh)
    epilogue += kEpilogueGelu;
  if (product.activation == format::Activation::gelu_tanh_gradient)
    epilogue += kEpilogueGeluGradient;
  if (product.sum)
    epilogue += kEpilogueSum;
  if (product.depthSums)
    epilogue +=
        sumsA(product, isTransposed) ? kEpilogueSumsOfA : kEpilogueSumsOfB;
  return epilogue ? epilogue : kEpilogueDefault;
}

//===----------------------------------------------------------------------===//
// Plans
//===----------------------------------------------------------------------===//

class BlasPlan final : public LibraryPlan {
public:
  BlasPlan(const CublasLt &table, BlasHandle handle, const MatrixProduct &p)
      : table(table), handle(handle), product(p),
        isTransposed(isUnit(p.result.column, p.n)) {}
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
  MatrixProduct product;
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
  set(kLayoutBatch, static_cast<int32_t>(product.batch));
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
  set(kProductEpilogue, epilogueOf(product, isTransposed));
  if (form.sum) {
    set(kProductSumLeading, form.sum->leading);
    // Ways are chosen for an address that is aligned so.
    set(kProductSum, uintptr_t(product.sum->alignment));
  }
  if (product.depthSums)
    set(kProductBias, uintptr_t(product.depthSums->alignment));
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
  const StridedMatrix &first = isTransposed ? product.rhs : product.lhs;
  const StridedMatrix &second = isTransposed ? product.lhs : product.rhs;
  const StridedMatrix &addend = product.addend.value_or(product.result);
  set(kPreferredWorkspace, static_cast<uint64_t>(bytes));
  set(kPreferredReductions, kReduceInComputeType);
  set(kAlignmentOfA, first.alignment);
  set(kAlignmentOfA + 1, second.alignment);
  set(kAlignmentOfA + 2, addend.alignment);
  set(kAlignmentOfA + 3, product.result.alignment);
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
  std::optional<Form> form =
      isTransposed ? transpose(product) : keepOrder(product);
  if (form && form->sum && !isSumPossible(product, *form->sum))
    return false;
  if (form && product.depthSums &&
      !areDepthSumsPossible(product, *form, isTransposed))
    return false;
  if (!form || !typeOf(product.lhs.dtype) || !typeOf(product.result.dtype) ||
      product.batch > INT32_MAX)
    return false;
  if (Status status = describe(*form); !status.ok())
    return status;
  return choose(bytes, first);
}

/// Addresses that are part of the description.
BlasError BlasPlan::place(const LibraryOperands &operands) {
  BlasError error = kBlasSuccess;
  const void *vector = product.hasBias ? operands.bias : operands.depthSums;
  if (vector)
    error = table.matmulDescSetAttribute(description, kProductBias, &vector,
                                         sizeof(vector));
  if (product.sum && error == kBlasSuccess)
    error = table.matmulDescSetAttribute(description, kProductSum,
                                         &operands.sum, sizeof(operands.sum));
  return error;
}

Status BlasPlan::enqueue(const LibraryOperands &operands, StreamHandle stream) {
  if (BlasError error = place(operands))
    return check(error, "describing a matrix product");
  double scale = product.scale, keep = product.addend ? 1 : 0;
  float narrowScale = static_cast<float>(scale);
  float narrowKeep = static_cast<float>(keep);
  const void *alpha = isDouble() ? static_cast<void *>(&scale) : &narrowScale;
  const void *beta = isDouble() ? static_cast<void *>(&keep) : &narrowKeep;
  const void *first = isTransposed ? operands.rhs : operands.lhs;
  const void *second = isTransposed ? operands.lhs : operands.rhs;
  const void *addend = product.addend ? operands.addend : operands.result;
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
BlasLibrary::plan(const MatrixProduct &product, void *workspace, size_t bytes,
                  size_t first) const {
  auto plan = std::make_unique<BlasPlan>(table, handle, product);
  Result<bool> isThere = plan->prepare(workspace, bytes, first);
  if (!isThere.ok())
    return isThere.takeStatus();
  return *isThere ? std::unique_ptr<LibraryPlan>(std::move(plan)) : nullptr;
}
