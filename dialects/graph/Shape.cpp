#include "dialects/graph/Shape.h"

#include "llvm/Support/MathExtras.h"
#include <map>

using namespace mlir;

namespace tcc::graph {

Extents getExtents(RankedTensorType type) {
  if (auto map = dyn_cast_if_present<AffineMapAttr>(type.getEncoding()))
    return Extents(map.getValue().getResults());
  Extents extents;
  for (int64_t extent : type.getShape())
    extents.push_back(getAffineConstantExpr(extent, type.getContext()));
  return extents;
}

Extents getExtents(Value tensor) {
  return getExtents(cast<RankedTensorType>(tensor.getType()));
}

AffineExpr getExtent(Value tensor, int64_t axis) {
  return getExtents(tensor)[axis];
}

SmallVector<int64_t> getLongAxes(Value tensor) {
  SmallVector<int64_t> axes;
  for (auto [axis, extent] : llvm::enumerate(getExtents(tensor)))
    if (getConstant(extent) != 1)
      axes.push_back(axis);
  return axes;
}

static unsigned countSymbols(ArrayRef<AffineExpr> expressions) {
  unsigned count = 0;
  for (AffineExpr expression : expressions)
    expression.walk([&](AffineExpr part) {
      if (auto symbol = dyn_cast<AffineSymbolExpr>(part))
        count = std::max(count, symbol.getPosition() + 1);
    });
  return count;
}

AffineMap makeSizeMap(ArrayRef<AffineExpr> sizes, MLIRContext *context) {
  unsigned symbols = countSymbols(sizes);
  Extents simplified;
  for (AffineExpr size : sizes)
    simplified.push_back(simplifyAffineExpr(size, 0, symbols));
  return AffineMap::get(0, countSymbols(simplified), simplified, context);
}

RankedTensorType makeTensorType(ArrayRef<AffineExpr> extents,
                                Type elementType) {
  AffineMap map = makeSizeMap(extents, elementType.getContext());
  SmallVector<int64_t> shape;
  bool isStatic = true;
  for (AffineExpr extent : map.getResults()) {
    shape.push_back(getConstant(extent).value_or(ShapedType::kDynamic));
    isStatic &= shape.back() != ShapedType::kDynamic;
  }
  if (isStatic)
    return RankedTensorType::get(shape, elementType);
  return RankedTensorType::get(shape, elementType, AffineMapAttr::get(map));
}

RankedTensorType withElementType(RankedTensorType type, Type elementType) {
  return RankedTensorType::get(type.getShape(), elementType,
                               type.getEncoding());
}

AffineExpr getNumElements(ArrayRef<AffineExpr> extents, MLIRContext *context) {
  AffineExpr product = getAffineConstantExpr(1, context);
  for (AffineExpr extent : extents)
    product = product * extent;
  return product;
}

namespace {

/// A sum of products: the coefficient of each product of symbols and quotients,
/// which are listed in the order of their addresses.
using Polynomial = std::map<std::vector<const void *>, uint64_t>;

} // namespace

/// More terms are not compared.
constexpr size_t kMaxTerms = 256;

static Polynomial multiply(const Polynomial &lhs, const Polynomial &rhs) {
  Polynomial product;
  for (const auto &[a, x] : lhs)
    for (const auto &[b, y] : rhs) {
      std::vector<const void *> factors(a.size() + b.size());
      std::merge(a.begin(), a.end(), b.begin(), b.end(), factors.begin());
      product[factors] += x * y;
    }
  return product;
}

static std::optional<Polynomial> expand(AffineExpr expression) {
  if (auto constant = getConstant(expression))
    return Polynomial{{{}, uint64_t(*constant)}};
  auto kind = expression.getKind();
  if (kind != AffineExprKind::Add && kind != AffineExprKind::Mul)
    return Polynomial{{{expression.getAsOpaquePointer()}, 1}};
  auto binary = cast<AffineBinaryOpExpr>(expression);
  auto lhs = expand(binary.getLHS()), rhs = expand(binary.getRHS());
  if (!lhs || !rhs || lhs->size() * rhs->size() > kMaxTerms)
    return std::nullopt;
  if (kind == AffineExprKind::Mul)
    return multiply(*lhs, *rhs);
  for (const auto &[factors, coefficient] : *rhs)
    (*lhs)[factors] += coefficient;
  return lhs;
}

bool isEqual(AffineExpr lhs, AffineExpr rhs) {
  if (lhs == rhs)
    return true;
  unsigned symbols = countSymbols({lhs, rhs});
  AffineExpr difference = simplifyAffineExpr(lhs - rhs, 0, symbols);
  if (difference.isPureAffine())
    return getConstant(difference) == 0;
  // Products of symbols are not put into one order by the above.
  auto expanded = expand(difference);
  return expanded && llvm::all_of(*expanded, [](const auto &term) {
           return term.second == 0;
         });
}

std::optional<int64_t> getConstant(AffineExpr expression) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expression))
    return constant.getValue();
  return std::nullopt;
}

static AxisGroup getFirstGroup(ArrayRef<AffineExpr> from,
                               ArrayRef<AffineExpr> to) {
  for (size_t count = 2; count < from.size() + to.size(); ++count)
    for (size_t m = 1; m < count && m <= from.size(); ++m) {
      size_t n = count - m;
      MLIRContext *context = from.front().getContext();
      if (n <= to.size() && isEqual(getNumElements(from.take_front(m), context),
                                    getNumElements(to.take_front(n), context)))
        return {0, m, 0, n};
    }
  return {0, from.size(), 0, to.size()};
}

SmallVector<AxisGroup> groupAxes(ArrayRef<AffineExpr> from,
                                 ArrayRef<AffineExpr> to) {
  SmallVector<AxisGroup> groups;
  size_t i = 0, j = 0;
  while (i < from.size() || j < to.size()) {
    AxisGroup group = getFirstGroup(from.drop_front(i), to.drop_front(j));
    groups.push_back({i, i + group.fromEnd, j, j + group.toEnd});
    i += group.fromEnd;
    j += group.toEnd;
  }
  return groups;
}

SmallVector<SymbolAttr> getSymbols(ModuleOp module) {
  SmallVector<SymbolAttr> symbols;
  if (!module)
    return symbols;
  if (auto attr = module->getAttrOfType<ArrayAttr>(GraphDialect::kSymbolsAttr))
    for (Attribute symbol : attr)
      symbols.push_back(cast<SymbolAttr>(symbol));
  return symbols;
}

void setSymbols(ModuleOp module, ArrayRef<SymbolAttr> symbols) {
  SmallVector<Attribute> attributes(symbols.begin(), symbols.end());
  module->setAttr(GraphDialect::kSymbolsAttr,
                  ArrayAttr::get(module.getContext(), attributes));
}

SmallVector<unsigned> getUsedSymbols(AffineExpr expression) {
  SmallVector<unsigned> used;
  expression.walk([&](AffineExpr part) {
    auto symbol = dyn_cast<AffineSymbolExpr>(part);
    if (symbol && !llvm::is_contained(used, symbol.getPosition()))
      used.push_back(symbol.getPosition());
  });
  return used;
}

SmallVector<unsigned> getUsedSymbols(Operation *op) {
  SmallVector<unsigned> used;
  auto add = [&](AffineMap map) {
    for (AffineExpr size : map.getResults())
      for (unsigned symbol : getUsedSymbols(size))
        if (!llvm::is_contained(used, symbol))
          used.push_back(symbol);
  };
  for (Type type : op->getResultTypes())
    if (auto tensor = dyn_cast<RankedTensorType>(type))
      if (auto map = dyn_cast_if_present<AffineMapAttr>(tensor.getEncoding()))
        add(map.getValue());
  for (NamedAttribute attr : op->getAttrs())
    attr.getValue().walk([&](AffineMapAttr map) { add(map.getValue()); });
  return used;
}

bool isComputed(AffineExpr expression, ArrayRef<SymbolAttr> symbols) {
  return llvm::any_of(getUsedSymbols(expression), [&](unsigned symbol) {
    return symbol < symbols.size() && symbols[symbol].getIsComputed();
  });
}

LogicalResult verifyComputedSymbol(Operation *op, AffineMap map) {
  auto module = op->getParentOfType<ModuleOp>();
  if (module && map.getNumResults() == 1 &&
      isa<AffineSymbolExpr>(map.getResult(0)) &&
      isComputed(map.getResult(0), getSymbols(module)))
    return success();
  return op->emitOpError("expected a computed symbol, found ")
         << AffineMapAttr::get(map);
}

SmallVector<SetSize> findSetSizes(TypeRange as, TypeRange from) {
  SmallVector<SetSize> found;
  for (auto [whole, own] : llvm::zip(as, from))
    for (auto [extent, value] :
         llvm::zip(getExtents(cast<RankedTensorType>(whole)),
                   getExtents(cast<RankedTensorType>(own)))) {
      auto symbol = dyn_cast<AffineSymbolExpr>(extent);
      if (symbol && extent != value &&
          llvm::none_of(found, [&](const SetSize &set) {
            return set.symbol == symbol.getPosition();
          }))
        found.push_back({symbol.getPosition(), value});
    }
  return found;
}

LogicalResult verifySetSizes(Operation *op, TypeRange as, TypeRange from) {
  SmallVector<SymbolAttr> symbols = getSymbols(op->getParentOfType<ModuleOp>());
  auto isFit = [](std::tuple<Type, Type> pair) {
    auto a = cast<RankedTensorType>(std::get<0>(pair));
    auto b = cast<RankedTensorType>(std::get<1>(pair));
    return a.getElementType() == b.getElementType() &&
           a.getRank() == b.getRank();
  };
  if (as.size() != from.size() || !llvm::all_of(llvm::zip(as, from), isFit))
    return op->emitOpError("does not give the types (") << as << ")";
  SmallVector<SetSize> set = findSetSizes(as, from);
  for (auto [whole, own] : llvm::zip_equal(as, from))
    for (auto [extent, value] :
         llvm::zip_equal(getExtents(cast<RankedTensorType>(whole)),
                         getExtents(cast<RankedTensorType>(own)))) {
      auto symbol = dyn_cast<AffineSymbolExpr>(extent);
      auto found = llvm::find_if(set, [&](const SetSize &one) {
        return symbol && one.symbol == symbol.getPosition();
      });
      if (extent == value && found == set.end())
        continue;
      if (found == set.end() || !isComputed(extent, symbols))
        return op->emitOpError("gives ") << own << " for " << whole;
      if (found->value != value)
        return op->emitOpError("sets symbol ")
               << found->symbol << " to two sizes";
    }
  return success();
}

static Range getBinaryRange(AffineExprKind kind, Range lhs, Range rhs) {
  switch (kind) {
  case AffineExprKind::Add:
    return {lhs.min + rhs.min, lhs.max + rhs.max};
  case AffineExprKind::Mul: {
    int64_t corners[] = {lhs.min * rhs.min, lhs.min * rhs.max,
                         lhs.max * rhs.min, lhs.max * rhs.max};
    return {*std::min_element(corners, corners + 4),
            *std::max_element(corners, corners + 4)};
  }
  case AffineExprKind::FloorDiv:
    return {llvm::divideFloorSigned(lhs.min, rhs.max),
            llvm::divideFloorSigned(lhs.max, rhs.min)};
  case AffineExprKind::CeilDiv:
    return {llvm::divideCeilSigned(lhs.min, rhs.max),
            llvm::divideCeilSigned(lhs.max, rhs.min)};
  case AffineExprKind::Mod:
    return {0, rhs.max - 1};
  default:
    llvm_unreachable("not a binary affine expression");
  }
}

void collectFactors(AffineExpr size, int64_t &scale,
                    SmallVectorImpl<AffineExpr> &factors) {
  auto binary = dyn_cast<AffineBinaryOpExpr>(size);
  if (auto known = getConstant(size)) {
    scale *= *known;
  } else if (binary && binary.getKind() == AffineExprKind::Mul) {
    collectFactors(binary.getLHS(), scale, factors);
    collectFactors(binary.getRHS(), scale, factors);
  } else {
    factors.push_back(size);
  }
}

/// Takes the factors of a limit that one of `factors` has out of these, and
/// gives what their product is at most.
static std::optional<int64_t> takeLimit(SmallVectorImpl<AffineExpr> &factors,
                                        ArrayRef<SymbolAttr> symbols) {
  for (AffineExpr factor : factors) {
    auto symbol = dyn_cast<AffineSymbolExpr>(factor);
    LimitAttr limit =
        symbol ? symbols[symbol.getPosition()].getLimit() : LimitAttr();
    if (!limit)
      continue;
    int64_t scale = 1;
    SmallVector<AffineExpr> limited, rest(factors.begin(), factors.end());
    collectFactors(limit.getProduct().getValue().getResult(0), scale, limited);
    bool isWhole = llvm::all_of(limited, [&](AffineExpr part) {
      auto *found = llvm::find(rest, part);
      bool isFound = found != rest.end();
      if (isFound)
        rest.erase(found);
      return isFound;
    });
    if (!isWhole)
      continue;
    factors.assign(rest.begin(), rest.end());
    return limit.getMax() / scale;
  }
  return std::nullopt;
}

double getMaxProduct(ArrayRef<AffineExpr> sizes, ArrayRef<SymbolAttr> symbols) {
  int64_t scale = 1;
  SmallVector<AffineExpr> factors;
  double product = 1;
  for (AffineExpr size : sizes) {
    if (getConstant(size) == 0)
      return 0;
    scale = 1;
    collectFactors(size, scale, factors);
    product *= std::abs(double(scale));
  }
  while (auto limit = takeLimit(factors, symbols))
    product *= double(*limit);
  for (AffineExpr factor : factors) {
    Range range = getRange(factor, symbols);
    product *= std::max(double(range.max), -double(range.min));
  }
  return product;
}

/// The range of a product of which symbols with a limit are factors.
static std::optional<Range> getLimitedRange(AffineExpr product,
                                            ArrayRef<SymbolAttr> symbols) {
  int64_t scale = 1;
  SmallVector<AffineExpr> factors;
  collectFactors(product, scale, factors);
  auto limit = takeLimit(factors, symbols);
  if (!limit)
    return std::nullopt;
  MLIRContext *context = product.getContext();
  Range rest = getRange(getNumElements(factors, context), symbols);
  Range range = getBinaryRange(AffineExprKind::Mul, {0, *limit}, rest);
  return getBinaryRange(AffineExprKind::Mul, {scale, scale}, range);
}

Range getRange(AffineExpr expression, ArrayRef<SymbolAttr> symbols) {
  if (auto constant = getConstant(expression))
    return {*constant, *constant};
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expression)) {
    SymbolAttr attr = symbols[symbol.getPosition()];
    return {attr.getMin(), attr.getMax()};
  }
  auto binary = cast<AffineBinaryOpExpr>(expression);
  if (binary.getKind() == AffineExprKind::Mul)
    if (auto range = getLimitedRange(binary, symbols))
      return *range;
  return getBinaryRange(binary.getKind(), getRange(binary.getLHS(), symbols),
                        getRange(binary.getRHS(), symbols));
}

int64_t evaluate(AffineExpr expression, ArrayRef<int64_t> symbols) {
  if (auto constant = getConstant(expression))
    return *constant;
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expression))
    return symbols[symbol.getPosition()];
  auto binary = cast<AffineBinaryOpExpr>(expression);
  int64_t lhs = evaluate(binary.getLHS(), symbols);
  int64_t rhs = evaluate(binary.getRHS(), symbols);
  switch (binary.getKind()) {
  case AffineExprKind::Add:
    return lhs + rhs;
  case AffineExprKind::Mul:
    return lhs * rhs;
  case AffineExprKind::FloorDiv:
    return llvm::divideFloorSigned(lhs, rhs);
  case AffineExprKind::CeilDiv:
    return llvm::divideCeilSigned(lhs, rhs);
  case AffineExprKind::Mod:
    return llvm::mod(lhs, rhs);
  default:
    llvm_unreachable("not a binary affine expression");
  }
}

std::optional<Extents> broadcastExtents(ArrayRef<AffineExpr> lhs,
                                        ArrayRef<AffineExpr> rhs) {
  if (lhs.size() < rhs.size())
    std::swap(lhs, rhs);
  Extents result(lhs);
  size_t offset = lhs.size() - rhs.size();
  for (auto [i, extent] : llvm::enumerate(rhs)) {
    AffineExpr &target = result[offset + i];
    if (getConstant(extent) == 1 || isEqual(extent, target))
      continue;
    if (getConstant(target) != 1)
      return std::nullopt;
    target = extent;
  }
  return result;
}

} // namespace tcc::graph
