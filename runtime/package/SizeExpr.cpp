#include "runtime/package/SizeExpr.h"

#include "runtime/package/Alignment.h"

#include <algorithm>
#include <limits>
#include <numeric>

using namespace tcc;
using namespace tcc::runtime;
using format::SizeOp;

static bool isLeaf(SizeOp op) {
  return op == SizeOp::constant || op == SizeOp::slot;
}

bool runtime::isWellFormed(const format::SizeExpr &expr, size_t slotCount) {
  if (!isAligned<format::SizeInstruction>(*expr.code()))
    return false;
  size_t depth = 0;
  for (const format::SizeInstruction *step : *expr.code()) {
    if (step->op() > SizeOp::MAX)
      return false;
    if (!isLeaf(step->op())) {
      if (depth < 2)
        return false;
      --depth;
      continue;
    }
    if (step->op() == SizeOp::slot &&
        static_cast<uint64_t>(step->value()) >= slotCount)
      return false;
    if (++depth > kMaxSizeDepth)
      return false;
  }
  return depth == 1;
}

/// Rounds towards minus infinity.
static int64_t floorDivide(int64_t a, int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static bool apply(SizeOp op, int64_t a, int64_t b, int64_t &value) {
  bool divides =
      op == SizeOp::floor_div || op == SizeOp::ceil_div || op == SizeOp::mod;
  bool overflows = a == std::numeric_limits<int64_t>::min() && b == -1;
  if (divides && (b == 0 || overflows))
    return false;
  switch (op) {
  case SizeOp::add:
    return !__builtin_add_overflow(a, b, &value);
  case SizeOp::sub:
    return !__builtin_sub_overflow(a, b, &value);
  case SizeOp::mul:
    return !__builtin_mul_overflow(a, b, &value);
  case SizeOp::floor_div:
    value = floorDivide(a, b);
    return true;
  case SizeOp::ceil_div:
    value = floorDivide(a, b) + (a % b != 0);
    return true;
  case SizeOp::mod:
    value = a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0);
    return true;
  case SizeOp::min:
    value = std::min(a, b);
    return true;
  case SizeOp::max:
    value = std::max(a, b);
    return true;
  case SizeOp::constant:
  case SizeOp::slot:
    break;
  }
  return false;
}

bool runtime::evaluate(const format::SizeExpr &expr, const int64_t *slots,
                       int64_t &value) {
  int64_t stack[kMaxSizeDepth];
  size_t depth = 0;
  for (const format::SizeInstruction *step : *expr.code()) {
    if (isLeaf(step->op())) {
      stack[depth++] =
          step->op() == SizeOp::slot ? slots[step->value()] : step->value();
      continue;
    }
    --depth;
    if (!apply(step->op(), stack[depth - 1], stack[depth], stack[depth - 1]))
      return false;
  }
  value = stack[0];
  return true;
}

namespace {

/// What is known of a value on the stack.
struct Known {
  uint64_t divisor;
  bool isConstant;
};

} // namespace

/// As MLIR's AffineExpr::getLargestKnownDivisor: what the compiler takes for
/// granted must be found again here.
static uint64_t divisorOf(SizeOp op, Known a, Known b) {
  uint64_t product = 0;
  switch (op) {
  case SizeOp::mul:
    return __builtin_mul_overflow(a.divisor, b.divisor, &product) ? 1 : product;
  case SizeOp::floor_div:
  case SizeOp::ceil_div:
    return b.isConstant && b.divisor != 0 && a.divisor % b.divisor == 0
               ? a.divisor / b.divisor
               : 1;
  default:
    return std::gcd(a.divisor, b.divisor);
  }
}

uint64_t runtime::knownDivisor(const format::SizeExpr &expr) {
  Known stack[kMaxSizeDepth];
  size_t depth = 0;
  for (const format::SizeInstruction *step : *expr.code()) {
    uint64_t value = static_cast<uint64_t>(step->value());
    if (step->op() == SizeOp::slot) {
      stack[depth++] = {1, false};
    } else if (step->op() == SizeOp::constant) {
      stack[depth++] = {step->value() < 0 ? -value : value, true};
    } else {
      --depth;
      stack[depth - 1] = {divisorOf(step->op(), stack[depth - 1], stack[depth]),
                          false};
    }
  }
  return stack[0].divisor;
}

int64_t runtime::slotOf(const format::SizeExpr &expr) {
  if (expr.code()->size() != 1 || expr.code()->Get(0)->op() != SizeOp::slot)
    return -1;
  return expr.code()->Get(0)->value();
}

template <typename Predicate>
static bool readsOnlySlots(const format::SizeExpr &expr, Predicate isAllowed) {
  return std::all_of(expr.code()->begin(), expr.code()->end(),
                     [&](const format::SizeInstruction *step) {
                       return step->op() != SizeOp::slot ||
                              isAllowed(step->value());
                     });
}

bool runtime::readsOnlySlotsBelow(const format::SizeExpr &expr,
                                  size_t slotCount) {
  return readsOnlySlots(expr, [&](int64_t slot) {
    return static_cast<uint64_t>(slot) < slotCount;
  });
}

bool runtime::readsOnlySlot(const format::SizeExpr &expr, int64_t slot) {
  return readsOnlySlots(expr, [&](int64_t read) { return read == slot; });
}

std::optional<std::vector<int64_t>>
runtime::staticShape(const format::TensorSpec &tensor) {
  std::vector<int64_t> shape;
  for (const format::SizeExpr *extent : *tensor.shape())
    if (!readsOnlySlotsBelow(*extent, 0) ||
        !evaluate(*extent, nullptr, shape.emplace_back()))
      return std::nullopt;
  return shape;
}
