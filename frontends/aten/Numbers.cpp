#include "frontends/aten/Numbers.h"

#include "llvm/ADT/StringSwitch.h"
#include <cmath>

using namespace mlir;

namespace tcc::aten {

using Kind = Item::Kind;

/// A function of two numbers, on sizes and on floats.
struct BinaryRow {
  llvm::StringLiteral name;
  SizeOp onSizes;
  double (*onReals)(double, double);
};

static double modulo(double a, double b) {
  double rest = std::fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

static const BinaryRow kBinaries[] = {
    {"add", SizeOp::add, [](double a, double b) { return a + b; }},
    {"sub", SizeOp::sub, [](double a, double b) { return a - b; }},
    {"mul", SizeOp::mul, [](double a, double b) { return a * b; }},
    {"mod", SizeOp::mod, modulo},
    {"remainder", SizeOp::mod, modulo},
    {"sym_max", SizeOp::max, [](double a, double b) { return std::max(a, b); }},
    {"sym_min", SizeOp::min, [](double a, double b) { return std::min(a, b); }},
    {"max", SizeOp::max, [](double a, double b) { return std::max(a, b); }},
    {"min", SizeOp::min, [](double a, double b) { return std::min(a, b); }},
};

static std::optional<SizeCompare> findCompare(llvm::StringRef name) {
  return llvm::StringSwitch<std::optional<SizeCompare>>(name)
      .Case("eq", SizeCompare::eq)
      .Case("ne", SizeCompare::ne)
      .Case("lt", SizeCompare::lt)
      .Case("le", SizeCompare::le)
      .Case("gt", SizeCompare::gt)
      .Case("ge", SizeCompare::ge)
      .Default(std::nullopt);
}

static const BinaryRow *findBinary(llvm::StringRef name) {
  for (const BinaryRow &row : kBinaries)
    if (row.name == name)
      return &row;
  return nullptr;
}

static bool isUnary(llvm::StringRef name) {
  return llvm::StringSwitch<bool>(name)
      .Cases("neg", "sqrt", "floor", "ceil", "log", "exp", true)
      .Cases("not_", "__not__", "sym_float", "sym_int", "sym_not", true)
      .Cases("Int", "Float", "Bool", "trunc", "abs", true)
      .Default(false);
}

static bool isDivision(llvm::StringRef name) {
  return name == "floordiv" || name == "truediv" || name == "div" ||
         name == "floor_divide" || name == "pow";
}

bool isOfNumbers(const Request &request) {
  llvm::StringRef name = request.name;
  if (name == "sym_size" || name == "sym_numel" || name == "item" ||
      name == "_local_scalar_dense")
    return true;
  bool isFunction = findBinary(name) || findCompare(name) || isUnary(name) ||
                    isDivision(name) || name.starts_with("__");
  if (!isFunction || request.positional.empty() || !request.named.empty())
    return false;
  return llvm::all_of(request.positional, [](const Item &item) {
    return item.isNumber() || (item.is(Kind::tensor) && item.tensor->number);
  });
}

// --- Functions ---------------------------------------------------------------

/// Rounded towards minus infinity.
static Size divideFloor(const Sizes &sizes, AffineExpr a, AffineExpr b) {
  if (auto exact = sizes.divideProducts(a, b))
    return exact;
  Size rest = sizes.apply(SizeOp::mod, a, b);
  Size whole = rest ? sizes.apply(SizeOp::sub, a, *rest) : rest;
  if (Size exact = whole ? sizes.divideProducts(*whole, b) : whole)
    return exact;
  bool isPositive =
      sizes.compare(SizeCompare::ge, a, sizes.constant(0)) == true &&
      sizes.compare(SizeCompare::gt, b, sizes.constant(0)) == true;
  return isPositive ? sizes.apply(SizeOp::div, a, b) : std::nullopt;
}

static std::optional<Item> divide(const Sizes &sizes, llvm::StringRef name,
                                  const Item &a, const Item &b) {
  auto x = getNumber(a), y = getNumber(b);
  bool areSizes = !a.is(Kind::real) && !b.is(Kind::real);
  if (name == "pow") {
    if (!x || !y)
      return std::nullopt;
    double power = std::pow(*x, *y);
    bool isExact = areSizes && *y >= 0 && std::abs(power) < 0x1p53;
    return isExact ? Item::ofInteger(sizes.constant(int64_t(power)))
                   : Item::ofReal(power);
  }
  if (areSizes && (name == "floordiv" || name == "floor_divide")) {
    if (y == 0.0)
      return std::nullopt;
    Size quotient = divideFloor(sizes, a.size, b.size);
    return quotient ? std::optional(Item::ofInteger(*quotient)) : std::nullopt;
  }
  if (!x || !y || *y == 0)
    return std::nullopt;
  bool isFloor = name == "floordiv" || name == "floor_divide";
  return Item::ofReal(isFloor ? std::floor(*x / *y) : *x / *y);
}

static std::optional<Item> computeBinary(const Sizes &sizes,
                                         const BinaryRow &row, const Item &a,
                                         const Item &b) {
  if (a.is(Kind::real) || b.is(Kind::real)) {
    auto x = getNumber(a), y = getNumber(b);
    if (!x || !y)
      return std::nullopt;
    return Item::ofReal(row.onReals(*x, *y));
  }
  Size result = sizes.apply(row.onSizes, a.size, b.size);
  return result ? std::optional(Item::ofInteger(*result)) : std::nullopt;
}

static std::optional<Item> compare(const Sizes &sizes, SizeCompare kind,
                                   const Item &a, const Item &b) {
  std::optional<bool> holds;
  if (!a.is(Kind::real) && !b.is(Kind::real)) {
    holds = sizes.compare(kind, a.size, b.size);
  } else if (auto x = getNumber(a), y = getNumber(b); x && y) {
    bool results[] = {*x == *y, *x != *y, *x<*y, *x <= *y, *x> * y, *x >= *y};
    holds = results[int(kind)];
  }
  return holds ? std::optional(Item::ofBoolean(sizes.constant(*holds)))
               : std::nullopt;
}

static std::optional<Item> computeUnary(const Sizes &sizes,
                                        llvm::StringRef name, const Item &a) {
  bool isReal = a.is(Kind::real);
  if (name == "neg" && !isReal)
    if (Size opposite = sizes.apply(SizeOp::sub, sizes.constant(0), a.size))
      return Item::ofInteger(*opposite);
  if (name == "sym_float" || name == "Float") {
    auto x = getNumber(a);
    return x ? std::optional(Item::ofReal(*x)) : std::nullopt;
  }
  if ((name == "sym_int" || name == "Int" || name == "floor" ||
       name == "ceil" || name == "trunc") &&
      !isReal)
    return Item::ofInteger(a.size);
  auto x = getNumber(a);
  if (!x)
    return std::nullopt;
  if (name == "not_" || name == "__not__" || name == "sym_not")
    return Item::ofBoolean(sizes.constant(*x == 0));
  if (name == "Bool")
    return Item::ofBoolean(sizes.constant(*x != 0));
  double y = llvm::StringSwitch<double>(name)
                 .Case("neg", -*x)
                 .Case("abs", std::abs(*x))
                 .Case("sqrt", std::sqrt(*x))
                 .Case("log", std::log(*x))
                 .Case("exp", std::exp(*x))
                 .Case("floor", std::floor(*x))
                 .Case("ceil", std::ceil(*x))
                 .Default(std::trunc(*x));
  bool isInteger = llvm::StringSwitch<bool>(name)
                       .Cases("floor", "ceil", "trunc", "sym_int", "Int", true)
                       .Default(name == "abs" && !isReal);
  if (!isInteger)
    return Item::ofReal(y);
  if (!(std::abs(y) < 0x1p62))
    return std::nullopt;
  return Item::ofInteger(sizes.constant(int64_t(y)));
}

// --- Sizes of tensors --------------------------------------------------------

static std::optional<Item> computeSize(Tracer &tracer, llvm::StringRef name,
                                       llvm::ArrayRef<Item> arguments,
                                       std::string &refusal) {
  RankedTensorType type = tracer.getType(*arguments[0].tensor);
  graph::Extents extents = type ? graph::getExtents(type) : graph::Extents();
  if (name == "sym_numel") {
    Size count = tracer.getSizes().product(extents);
    return count ? std::optional(Item::ofInteger(*count)) : std::nullopt;
  }
  auto axis = arguments.size() == 2 && arguments[1].is(Kind::integer)
                  ? graph::getConstant(arguments[1].size)
                  : std::nullopt;
  int64_t rank = extents.size();
  if (!axis || *axis < -rank || *axis >= rank) {
    refusal = "the axis is out of range";
    return std::nullopt;
  }
  return Item::ofInteger(extents[*axis < 0 ? *axis + rank : *axis]);
}

std::optional<Item> computeNumber(Tracer &tracer, llvm::StringRef name,
                                  llvm::ArrayRef<Item> arguments,
                                  std::string &refusal) {
  refusal = "cannot be computed at import";
  if (arguments.empty())
    return std::nullopt;
  bool isTensor = arguments[0].is(Kind::tensor);
  if (isTensor && (name == "sym_size" || name == "sym_numel"))
    return computeSize(tracer, name, arguments, refusal);
  SmallVector<Item> numbers;
  bool isWrapped = false;
  for (const Item &argument : arguments) {
    auto number = argument.is(Kind::tensor) ? tracer.getNumber(*argument.tensor)
                                            : std::optional(argument);
    if (!number || !number->isNumber()) {
      refusal = "depends on data";
      return std::nullopt;
    }
    isWrapped |= argument.is(Kind::tensor);
    numbers.push_back(*number);
  }
  const Sizes &sizes = tracer.getSizes();
  if (name == "item" || name == "_local_scalar_dense")
    return numbers[0];
  std::optional<Item> result;
  if (numbers.size() == 1 && isUnary(name))
    return computeUnary(sizes, name, numbers[0]);
  if (numbers.size() != 2)
    return std::nullopt;
  if (const BinaryRow *row = findBinary(name))
    result = computeBinary(sizes, *row, numbers[0], numbers[1]);
  else if (auto kind = findCompare(name))
    result = compare(sizes, *kind, numbers[0], numbers[1]);
  else if (isDivision(name))
    result = divide(sizes, name, numbers[0], numbers[1]);
  else
    refusal = "is not supported";
  // What stood for a number as a tensor goes on so.
  if (result && isWrapped)
    return Item::of(tracer.makeNumber(*result));
  return result;
}

} // namespace tcc::aten
