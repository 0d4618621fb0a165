#include "runtime/package/LibraryRules.h"

#include "runtime/package/DType.h"

#include <algorithm>
#include <cmath>

using namespace tcc;
using namespace tcc::runtime;
using format::StepKind;
using format::WorkKind;

namespace {
using enum format::StepKind; // beside <cmath>'s ::tanh
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

static constexpr StepTraits kTraits[] = {
    // scale, add, bias
    {OperandForm::none, false, false, false},
    {OperandForm::elements, false, false, true},
    {OperandForm::columns, false, false, false},
    // relu, gelu_tanh, gelu_tanh_gradient
    {OperandForm::none, true, false, false},
    {OperandForm::none, true, false, false},
    {OperandForm::elements, true, false, false},
    // store, sum_lhs, sum_rhs
    {OperandForm::elements, false, true, false},
    {OperandForm::rows, false, true, false},
    {OperandForm::columns, false, true, false},
    // silu, sigmoid, tanh, gelu
    {OperandForm::none, true, false, false},
    {OperandForm::none, true, false, false},
    {OperandForm::none, true, false, false},
    {OperandForm::none, true, false, false},
};
static_assert(std::size(kTraits) == size_t(StepKind::MAX) + 1);

const StepTraits &runtime::traitsOf(StepKind kind) {
  return kTraits[size_t(kind)];
}

size_t runtime::axisOf(OperandForm form, WorkKind kind) {
  return kind == WorkKind::product && form == OperandForm::columns ? 2 : 1;
}

bool runtime::isVectorAlong(const StridedView &view, size_t axis) {
  for (size_t i = 0; i < view.rank; ++i)
    if (view.extents[i] != 1 && view.strides[i] != (i == axis ? 1 : 0))
      return false;
  return true;
}

//===----------------------------------------------------------------------===//
// Rules
//===----------------------------------------------------------------------===//

namespace {

/// Types that are multiplied, and the one in which results are stored.
struct TypeRule {
  DType factors, result;
  bool inTf32 = false; ///< not without rounding
};

/// A step, and what of a work has to hold where it has the step.
struct StepRule {
  StepKind kind;
  unsigned after; ///< steps that may stand before it: see `set`
  std::optional<StepKind> next = {}; ///< the step that has to follow
  bool isNarrow = false;             ///< operands and result have 16 bits
  bool isOfNarrow = false;           ///< operands have 16 bits
  bool isOneMatrix = false;          ///< there is no batch
  bool isOfRows = false;       ///< rows of the result are adjacent elements
  bool hasOuterDepth = false;  ///< what is summed lies with its depth outermost
  int64_t leadingMultiple = 1; ///< of elements from a row of its operand to the
                               ///<   next
  uint32_t alignment = 1;      ///< bytes, of its operand
};

struct WorkRule {
  WorkKind kind;
  std::span<const TypeRule> types;
  std::span<const StepRule> steps; ///< each at most once
};

constexpr unsigned set(std::initializer_list<StepKind> kinds) {
  unsigned bits = 0;
  for (StepKind kind : kinds)
    bits |= 1u << unsigned(kind);
  return bits;
}

//===----------------------------------------------------------------------===//
// cuBLASLt
//===----------------------------------------------------------------------===//

constexpr TypeRule kProductTypes[] = {
    {DType::f32, DType::f32},   {DType::f64, DType::f64},
    {DType::f16, DType::f16},   {DType::f16, DType::f32},
    {DType::bf16, DType::bf16}, {DType::bf16, DType::f32}};

/// What gelu is of has, in both directions, a leading dimension of a multiple
/// of 8 and an address of a multiple of 16 bytes. Sums along the depth are
/// stored where a bias would be read; whether a factor scales them is not
/// documented, and tests of nvmath-python know of operands with their depth
/// outermost alone.
constexpr StepRule kProductSteps[] = {
    {.kind = scale, .after = 0},
    {.kind = add, .after = set({scale})},
    {.kind = bias, .after = set({scale, add}), .isOfRows = true},
    {.kind = relu, .after = set({scale, add, bias})},
    {.kind = store,
     .after = set({scale, add, bias}),
     .next = gelu_tanh,
     .isNarrow = true,
     .isOneMatrix = true,
     .isOfRows = true,
     .leadingMultiple = 8,
     .alignment = 16},
    {.kind = gelu_tanh, .after = set({scale, add, bias, store})},
    {.kind = gelu_tanh_gradient,
     .after = set({scale}),
     .isNarrow = true,
     .isOneMatrix = true,
     .isOfRows = true,
     .leadingMultiple = 8,
     .alignment = 16},
    {.kind = sum_lhs,
     .after = set({add}),
     .isOfNarrow = true,
     .isOneMatrix = true,
     .isOfRows = true,
     .hasOuterDepth = true},
    {.kind = sum_rhs,
     .after = set({add}),
     .isOfNarrow = true,
     .isOneMatrix = true,
     .isOfRows = true,
     .hasOuterDepth = true}};

//===----------------------------------------------------------------------===//
// cuDNN
//===----------------------------------------------------------------------===//

/// Products of f32 would be in tf32 unasked, and it says so nowhere.
constexpr TypeRule kConvolutionTypes[] = {
    {DType::f16, DType::f16},
    {DType::f16, DType::f32},
    {DType::bf16, DType::bf16},
    {DType::bf16, DType::f32},
    {DType::f32, DType::f32, /*inTf32=*/true}};

constexpr StepRule kConvolutionSteps[] = {
    {.kind = add, .after = 0},
    {.kind = bias, .after = set({add})},
    {.kind = relu, .after = set({add, bias})},
    {.kind = silu, .after = set({add, bias})},
    {.kind = sigmoid, .after = set({add, bias})},
    {.kind = tanh, .after = set({add, bias})},
    {.kind = gelu, .after = set({add, bias})},
    {.kind = gelu_tanh, .after = set({add, bias})}};

constexpr WorkRule kRules[] = {
    {WorkKind::product, kProductTypes, kProductSteps},
    {WorkKind::convolution, kConvolutionTypes, kConvolutionSteps},
    {WorkKind::filter_gradient, kConvolutionTypes, {}}};
static_assert(std::size(kRules) == size_t(WorkKind::MAX) + 1);

} // namespace

//===----------------------------------------------------------------------===//
// Well-formed work
//===----------------------------------------------------------------------===//

static bool isKnown(int64_t size) { return size != kUnknownSize; }

/// Sizes that are not known may be equal.
static bool mayEqual(int64_t a, int64_t b) {
  return a == b || !isKnown(a) || !isKnown(b);
}

static bool haveEqualExtents(const StridedView &a, const StridedView &b) {
  return std::ranges::equal(a.extentSpan(), b.extentSpan(), mayEqual);
}

/// Extents that operands share are equal.
static bool areExtentsWhole(const LibraryWork &work) {
  const auto &lhs = work.lhs.extents, &rhs = work.rhs.extents,
             &result = work.result.extents;
  switch (work.kind) {
  case WorkKind::product:
    return mayEqual(lhs[0], result[0]) && mayEqual(rhs[0], result[0]) &&
           mayEqual(lhs[1], result[1]) && mayEqual(rhs[2], result[2]) &&
           mayEqual(lhs[2], rhs[1]);
  case WorkKind::convolution:
    return mayEqual(lhs[0], result[0]) && mayEqual(rhs[0], result[1]);
  case WorkKind::filter_gradient:
    return mayEqual(lhs[0], rhs[0]) && mayEqual(rhs[1], result[0]);
  }
  return false;
}

static bool isWindowWhole(const LibraryWork &work) {
  const LibraryWindow &window = work.window;
  size_t axes = work.kind == WorkKind::product ? 0 : work.result.rank - 2;
  return window.padLow.size() == axes && window.padHigh.size() == axes &&
         window.strides.size() == axes && window.dilations.size() == axes;
}

static bool isFloat(DType dtype) {
  return isDType(dtype) && traitsOf(dtype).kind == DTypeKind::Float;
}

static bool isStepWhole(const LibraryStep &step, const LibraryWork &work) {
  // Plans are kept by the order of works, which NaN has no place in.
  if (step.kind > StepKind::MAX || !std::isfinite(step.factor))
    return false;
  OperandForm form = traitsOf(step.kind).form;
  if (form == OperandForm::none)
    return step.operand.rank == 0;
  return step.operand.dtype == work.result.dtype &&
         haveEqualExtents(step.operand, work.result) &&
         (form == OperandForm::elements ||
          isVectorAlong(step.operand, axisOf(form, work.kind)));
}

bool runtime::isWellFormed(const LibraryWork &work) {
  if (work.kind > WorkKind::MAX)
    return false;
  uint32_t rank = work.result.rank;
  bool isProduct = work.kind == WorkKind::product;
  bool hasRank = isProduct ? rank == 3 : rank >= 3 && rank <= kMaxLibraryAxes;
  return hasRank && work.lhs.rank == rank && work.rhs.rank == rank &&
         isFloat(work.lhs.dtype) && work.lhs.dtype == work.rhs.dtype &&
         isFloat(work.result.dtype) &&
         (!work.tf32 || work.lhs.dtype == DType::f32) &&
         areExtentsWhole(work) && isWindowWhole(work) &&
         std::ranges::all_of(work.steps, [&](const LibraryStep &step) {
           return isStepWhole(step, work);
         });
}

//===----------------------------------------------------------------------===//
// The matcher
//===----------------------------------------------------------------------===//

static bool isUnit(int64_t stride, int64_t extent) {
  return stride == 1 || extent == 1;
}

std::optional<int64_t> runtime::leadingOf(const StridedView &matrix,
                                          bool isOfRows) {
  size_t inner = isOfRows ? 2 : 1, outer = isOfRows ? 1 : 2;
  int64_t width = matrix.extents[inner];
  if (!isUnit(matrix.strides[inner], width))
    return std::nullopt;
  int64_t leading = matrix.extents[outer] == 1 ? width : matrix.strides[outer];
  if (isKnown(leading) && isKnown(width) && leading < width)
    return std::nullopt;
  return leading;
}

bool runtime::isResultOfRows(const LibraryWork &work) {
  return isUnit(work.result.strides[2], work.result.extents[2]);
}

/// Whether operands are matrices whose rows or columns are adjacent elements.
static bool areMatrices(const LibraryWork &work) {
  auto isMatrix = [](const StridedView &view) {
    return leadingOf(view, true) || leadingOf(view, false);
  };
  // What has the result's elements lies in its order.
  bool isOfRows = isResultOfRows(work);
  return isMatrix(work.lhs) && isMatrix(work.rhs) &&
         leadingOf(work.result, isOfRows) &&
         std::ranges::all_of(work.steps, [&](const LibraryStep &step) {
           return traitsOf(step.kind).form != OperandForm::elements ||
                  leadingOf(step.operand, isOfRows);
         });
}

static bool isNarrow(DType dtype) {
  return dtype == DType::f16 || dtype == DType::bf16;
}

/// Whether the operand that `step` sums is given to the library with its depth
/// outermost: one that lies in both orders is taken as of rows.
static bool hasOuterDepth(const LibraryWork &work, StepKind step) {
  return step == sum_lhs ? !leadingOf(work.lhs, /*isOfRows=*/true)
                         : leadingOf(work.rhs, /*isOfRows=*/true).has_value();
}

/// Whether `work` has what `rule` needs of it and of the operand of its step.
static bool isMet(const StepRule &rule, const LibraryStep &step,
                  const LibraryWork &work) {
  bool isOfNarrow = isNarrow(work.lhs.dtype);
  if ((rule.isOfNarrow && !isOfNarrow) ||
      (rule.isNarrow && !(isOfNarrow && isNarrow(work.result.dtype))) ||
      (rule.isOneMatrix && work.result.extents[0] != 1) ||
      (rule.isOfRows && !isResultOfRows(work)) ||
      (rule.hasOuterDepth && !hasOuterDepth(work, step.kind)) ||
      (step.operand.alignment && step.operand.alignment < rule.alignment))
    return false;
  if (rule.leadingMultiple == 1)
    return true;
  auto leading = leadingOf(step.operand, /*isOfRows=*/true);
  return leading &&
         (!isKnown(*leading) || *leading % rule.leadingMultiple == 0);
}

static bool areStepsKnown(const LibraryWork &work, const WorkRule &rule) {
  unsigned before = 0;
  for (size_t i = 0; i < work.steps.size(); ++i) {
    const LibraryStep &step = work.steps[i];
    auto known = std::ranges::find(rule.steps, step.kind, &StepRule::kind);
    if (known == rule.steps.end() || (before & ~known->after) ||
        !isMet(*known, step, work))
      return false;
    if (known->next &&
        (i + 1 == work.steps.size() || work.steps[i + 1].kind != *known->next))
      return false;
    before |= set({step.kind});
  }
  return true;
}

bool runtime::hasStep(WorkKind kind, StepKind step) {
  return std::ranges::any_of(
      kRules[size_t(kind)].steps,
      [&](const StepRule &rule) { return rule.kind == step; });
}

bool runtime::isOfLibrary(const LibraryWork &work) {
  const WorkRule &rule = kRules[size_t(work.kind)];
  bool isTypeKnown =
      std::ranges::any_of(rule.types, [&](const TypeRule &types) {
        return types.factors == work.lhs.dtype &&
               types.result == work.result.dtype &&
               (!types.inTf32 || work.tf32);
      });
  return isTypeKnown && areStepsKnown(work, rule) &&
         (work.kind != WorkKind::product || areMatrices(work));
}
