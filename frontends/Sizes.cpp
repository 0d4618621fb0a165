#include "frontends/Sizes.h"

#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;

namespace tcc {

AffineExpr Sizes::addSymbol(llvm::StringRef name, int64_t min, int64_t max) {
  symbols.push_back(graph::SymbolAttr::get(
      context, StringAttr::get(context, name), min, max, 1));
  return getAffineSymbolExpr(symbols.size() - 1, context);
}

AffineExpr Sizes::addComputed(llvm::StringRef name, int64_t min, int64_t max) {
  std::string unique = name.str();
  auto isTaken = [&](graph::SymbolAttr symbol) {
    return symbol.getName() == unique;
  };
  for (int number = 2; llvm::any_of(symbols, isTaken); ++number)
    unique = (name + "#" + llvm::Twine(number)).str();
  symbols.push_back(graph::SymbolAttr::get(
      context, StringAttr::get(context, unique), min, max, /*divisor=*/1,
      /*isComputed=*/true, graph::LimitAttr()));
  return getAffineSymbolExpr(symbols.size() - 1, context);
}

void Sizes::limitProduct(ArrayRef<AffineExpr> computed,
                         ArrayRef<AffineExpr> limited, int64_t max) {
  auto product = AffineMapAttr::get(
      graph::makeSizeMap({graph::getNumElements(computed, context)}, context));
  auto limit = graph::LimitAttr::get(context, product, max);
  for (AffineExpr size : limited) {
    graph::SymbolAttr &symbol =
        symbols[cast<AffineSymbolExpr>(size).getPosition()];
    symbol = graph::SymbolAttr::get(context, symbol.getName(), symbol.getMin(),
                                    symbol.getMax(), symbol.getDivisor(),
                                    symbol.getIsComputed(), limit);
  }
}

std::optional<int64_t> Sizes::findBound(llvm::StringRef name) {
  for (const SizeBound &bound : bounds)
    if (bound.name == name) {
      usedBounds.insert(name);
      return bound.max;
    }
  return std::nullopt;
}

std::vector<std::string> Sizes::describeBounds() const {
  std::vector<std::string> all;
  for (graph::SymbolAttr symbol : symbols) {
    if (!symbol.getIsComputed() || symbol.getMin() == symbol.getMax())
      continue;
    llvm::StringRef name = symbol.getName().getValue();
    std::string text = "a run computes size '" + name.str() + "': at most " +
                       std::to_string(symbol.getMax());
    if (graph::LimitAttr limit = symbol.getLimit())
      text += ", times the other axes " + std::to_string(limit.getMax());
    // A number behind # tells symbols of one name apart.
    std::string own = name.split('#').first.str();
    bool isGiven = llvm::any_of(
        bounds, [&](const SizeBound &bound) { return bound.name == own; });
    all.push_back(text + (isGiven ? ", as --bound says"
                                  : "; --bound " + own + "=N changes that"));
  }
  return all;
}

std::vector<std::string> Sizes::getUnusedBounds() const {
  std::vector<std::string> unused;
  for (const SizeBound &bound : bounds)
    if (!usedBounds.contains(bound.name))
      unused.push_back(bound.name);
  return unused;
}

AffineExpr Sizes::constant(int64_t value) const {
  return getAffineConstantExpr(value, context);
}

graph::Range Sizes::getRange(AffineExpr size) const {
  return graph::getRange(size, symbols);
}

std::string Sizes::print(AffineExpr size) const {
  std::string text;
  llvm::raw_string_ostream(text) << size;
  // Symbols are printed as s0, s1 and so on; nothing else has letters and
  // digits.
  std::string named;
  for (size_t i = 0; i < text.size(); ++i) {
    size_t end = i + 1;
    while (end < text.size() && llvm::isDigit(text[end]))
      ++end;
    unsigned position = 0;
    bool isSymbol =
        text[i] == 's' && end > i + 1 &&
        !StringRef(text).slice(i + 1, end).getAsInteger(10, position);
    named +=
        isSymbol ? symbols[position].getName().str() : std::string(1, text[i]);
    if (isSymbol)
      i = end - 1;
  }
  return named;
}

/// Ranges of one symbol up to this are tried value by value.
constexpr int64_t kMaxTried = 1 << 20;

/// Calls `visit` with values of `used` until it returns true: all those of a
/// single symbol, the bounds of several. Returns true if that was all values.
static bool tryValues(ArrayRef<graph::SymbolAttr> symbols,
                      ArrayRef<unsigned> used,
                      llvm::function_ref<bool(ArrayRef<int64_t>)> visit) {
  SmallVector<int64_t> values;
  for (graph::SymbolAttr symbol : symbols)
    values.push_back(symbol.getMin());
  if (used.size() == 1) {
    graph::SymbolAttr symbol = symbols[used.front()];
    if (symbol.getMax() - symbol.getMin() <= kMaxTried) {
      int64_t &value = values[used.front()];
      for (; value <= symbol.getMax(); ++value)
        if (visit(values))
          break;
      return true;
    }
  }
  size_t corners = size_t(1) << std::min<size_t>(used.size(), 10);
  for (size_t corner = 0; corner < corners; ++corner) {
    for (auto [i, symbol] : llvm::enumerate(used))
      values[symbol] =
          corner >> i & 1 ? symbols[symbol].getMax() : symbols[symbol].getMin();
    if (visit(values))
      break;
  }
  return false;
}

std::optional<std::string> Sizes::findNegative(AffineExpr size) const {
  if (getRange(size).min >= 0)
    return std::nullopt;
  SmallVector<unsigned> used = graph::getUsedSymbols(size);
  std::string where;
  bool areAll = tryValues(symbols, used, [&](ArrayRef<int64_t> values) {
    if (graph::evaluate(size, values) >= 0)
      return false;
    llvm::raw_string_ostream stream(where);
    llvm::interleave(
        used, stream,
        [&](unsigned symbol) {
          stream << symbols[symbol].getName().getValue() << " = "
                 << values[symbol];
        },
        ", ");
    return true;
  });
  if (areAll && where.empty())
    return std::nullopt;
  return where.empty() ? "some sizes" : where;
}

static Size applyConstants(SizeOp op, int64_t a, int64_t b,
                           MLIRContext *context) {
  // Unsigned arithmetic wraps; a file's constants may be anything.
  auto known = [&](uint64_t value) -> Size {
    return getAffineConstantExpr(static_cast<int64_t>(value), context);
  };
  uint64_t ua = a, ub = b;
  switch (op) {
  case SizeOp::add:
    return known(ua + ub);
  case SizeOp::sub:
    return known(ua - ub);
  case SizeOp::mul:
    return known(ua * ub);
  case SizeOp::min:
    return known(std::min(a, b));
  case SizeOp::max:
    return known(std::max(a, b));
  case SizeOp::div:
  case SizeOp::mod:
  case SizeOp::rem:
    break;
  }
  if (b == 0)
    return std::nullopt;
  if (b == -1)
    return known(op == SizeOp::div ? -ua : 0);
  int64_t remainder = a % b;
  if (op == SizeOp::div)
    return known(a / b);
  if (op == SizeOp::mod && remainder != 0 && (remainder < 0) != (b < 0))
    remainder += b;
  return known(remainder);
}

/// Affine arithmetic may overflow beyond these.
static bool isModerate(const graph::Range &range) {
  return range.min > -kMaxElements && range.max < kMaxElements;
}

static AffineExpr simplify(AffineExpr expression, unsigned symbols) {
  return simplifyAffineExpr(expression, 0, symbols);
}

Size Sizes::apply(SizeOp op, AffineExpr lhs, AffineExpr rhs) const {
  auto a = graph::getConstant(lhs), b = graph::getConstant(rhs);
  if (a && b)
    return applyConstants(op, *a, *b, context);
  graph::Range l = getRange(lhs), r = getRange(rhs);
  if (!isModerate(l) || !isModerate(r))
    return std::nullopt;
  unsigned count = symbols.size();
  switch (op) {
  case SizeOp::add:
    return simplify(lhs + rhs, count);
  case SizeOp::sub:
    return simplify(lhs - rhs, count);
  case SizeOp::mul: {
    // Products are bounded so that chains of them cannot overflow.
    if (graph::getMaxProduct({lhs, rhs}, symbols) >= double(kMaxElements))
      return std::nullopt;
    return simplify(lhs * rhs, count);
  }
  case SizeOp::div:
    if (Size exact = divideProducts({lhs}, {rhs}))
      return exact;
    if (b && *b > 0 && l.min >= 0)
      return simplify(lhs.floorDiv(*b), count);
    return std::nullopt;
  case SizeOp::mod:
  case SizeOp::rem:
    if (b && *b > 0 && (l.min >= 0 || op == SizeOp::mod))
      return simplify(lhs % *b, count);
    return std::nullopt;
  case SizeOp::min:
  case SizeOp::max: {
    auto isLess = compare(SizeCompare::le, lhs, rhs);
    if (!isLess)
      return std::nullopt;
    return *isLess == (op == SizeOp::min) ? lhs : rhs;
  }
  }
  return std::nullopt;
}

graph::Range Sizes::getTightRange(AffineExpr size) const {
  graph::Range tight{INT64_MAX, INT64_MIN};
  SmallVector<unsigned> used = graph::getUsedSymbols(size);
  bool isExact = used.size() == 1 &&
                 tryValues(symbols, used, [&](ArrayRef<int64_t> values) {
                   int64_t value = graph::evaluate(size, values);
                   tight.min = std::min(tight.min, value);
                   tight.max = std::max(tight.max, value);
                   return false;
                 });
  return isExact ? tight : getRange(size);
}

std::optional<bool> Sizes::compare(SizeCompare kind, AffineExpr lhs,
                                   AffineExpr rhs) const {
  graph::Range difference;
  auto a = graph::getConstant(lhs), b = graph::getConstant(rhs);
  if (a && b) {
    int64_t sign = *a < *b ? -1 : *a > *b;
    difference = {sign, sign};
  } else {
    if (!isModerate(getRange(lhs)) || !isModerate(getRange(rhs)))
      return std::nullopt;
    // n - (n + 1) floordiv 2: the bounds of the two say little.
    difference = getTightRange(simplify(lhs - rhs, symbols.size()));
  }
  auto decide = [](bool always, bool never) -> std::optional<bool> {
    if (always || never)
      return always;
    return std::nullopt;
  };
  auto [min, max] = difference;
  switch (kind) {
  case SizeCompare::eq:
    return decide(min == 0 && max == 0, min > 0 || max < 0);
  case SizeCompare::ne:
    return decide(min > 0 || max < 0, min == 0 && max == 0);
  case SizeCompare::lt:
    return decide(max < 0, min >= 0);
  case SizeCompare::le:
    return decide(max <= 0, min > 0);
  case SizeCompare::gt:
    return decide(min > 0, max <= 0);
  case SizeCompare::ge:
    return decide(min >= 0, max < 0);
  }
  return std::nullopt;
}

Size Sizes::clamp(AffineExpr size, AffineExpr low, AffineExpr high) const {
  // Bounds such as INT64_MAX mean "to the end".
  if (auto known = graph::getConstant(size)) {
    if (*known >= kMaxElements)
      return high;
    if (*known <= -kMaxElements)
      return low;
  }
  Size raised = apply(SizeOp::max, size, low);
  return raised ? apply(SizeOp::min, *raised, high) : std::nullopt;
}

Size Sizes::product(ArrayRef<AffineExpr> sizes) const {
  Size result = constant(1);
  for (AffineExpr size : sizes)
    if (result)
      result = apply(SizeOp::mul, *result, size);
  // Computed sizes may have a bound for the product of all of them alone.
  if (result || getMaxElements(sizes) >= kMaxElements)
    return result;
  return simplify(graph::getNumElements(sizes, context), symbols.size());
}

/// Terms of a sum divided one by one.
static Size divideTerms(AffineExpr size, int64_t divisor) {
  if (auto known = graph::getConstant(size)) {
    if (*known % divisor != 0)
      return std::nullopt;
    return getAffineConstantExpr(*known / divisor, size.getContext());
  }
  auto binary = dyn_cast<AffineBinaryOpExpr>(size);
  if (!binary)
    return std::nullopt;
  Size rhs = divideTerms(binary.getRHS(), divisor);
  if (binary.getKind() == AffineExprKind::Mul)
    return rhs ? Size(binary.getLHS() * *rhs) : std::nullopt;
  Size lhs = divideTerms(binary.getLHS(), divisor);
  if (binary.getKind() != AffineExprKind::Add || !lhs || !rhs)
    return std::nullopt;
  return *lhs + *rhs;
}

Size Sizes::divideProducts(ArrayRef<AffineExpr> numerator,
                           ArrayRef<AffineExpr> denominator) const {
  if (getMaxElements(numerator) > kMaxElements ||
      getMaxElements(denominator) > kMaxElements)
    return std::nullopt;
  int64_t scale = 1, divisor = 1;
  SmallVector<AffineExpr> factors, divisors;
  for (AffineExpr size : numerator)
    graph::collectFactors(size, scale, factors);
  for (AffineExpr size : denominator)
    graph::collectFactors(size, divisor, divisors);
  for (AffineExpr factor : divisors) {
    auto same = llvm::find_if(factors, [&](AffineExpr other) {
      return graph::isEqual(other, factor);
    });
    if (same == factors.end())
      return std::nullopt;
    factors.erase(same);
  }
  if (divisor == 0)
    return std::nullopt;
  int64_t common = std::gcd(scale, divisor);
  scale /= common;
  divisor /= common;
  AffineExpr result = constant(scale);
  for (AffineExpr factor : factors) {
    Size part = divisor == 1 ? std::nullopt : divideTerms(factor, divisor);
    result = result * part.value_or(factor);
    if (part)
      divisor = 1;
  }
  if (divisor != 1 && divisor != -1)
    return std::nullopt;
  return simplify(result * divisor, symbols.size());
}

int64_t Sizes::getMaxElements(ArrayRef<AffineExpr> extents) const {
  double product = graph::getMaxProduct(extents, symbols);
  return product > double(kMaxElements) ? kMaxElements + 1 : int64_t(product);
}

} // namespace tcc
