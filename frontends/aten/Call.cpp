#include "frontends/aten/Call.h"

#include "frontends/aten/Tracer.h"

using namespace mlir;

namespace tcc::aten {

using Kind = Item::Kind;

Type getElementType(int64_t scalarType, MLIRContext *context) {
  Builder builder(context);
  switch (scalarType) {
  case 0:
    return IntegerType::get(context, 8, IntegerType::Unsigned);
  case 1:
    return builder.getIntegerType(8);
  case 2:
    return builder.getIntegerType(16);
  case 3:
    return builder.getIntegerType(32);
  case 4:
    return builder.getI64Type();
  case 5:
    return builder.getF16Type();
  case 6:
    return builder.getF32Type();
  case 7:
    return builder.getF64Type();
  case 11:
    return builder.getI1Type();
  case 15:
    return builder.getBF16Type();
  }
  return nullptr;
}

std::optional<int64_t> getScalarType(Type type) {
  for (int64_t number : {0, 1, 2, 3, 4, 5, 6, 7, 11, 15})
    if (getElementType(number, type.getContext()) == type)
      return number;
  return std::nullopt;
}

Call::Call(Tracer &tracer, const Schema &schema, ArrayRef<Item> arguments,
           Location loc)
    : Emitter(tracer.getBuilder(), loc, tracer.getSizes()), tracer(tracer),
      schema(schema), arguments(arguments) {}

// --- Arguments ---------------------------------------------------------------

const Item &Call::get(StringRef name) {
  auto position = schema.find(name);
  assert(position && "the schema lacks a parameter that its row reads");
  return arguments[*position];
}

bool Call::has(StringRef name) { return !get(name).is(Kind::none); }

Value Call::tensor(StringRef name) {
  const Item &item = get(name);
  if (!item.is(Kind::tensor))
    return fail("argument '" + name + "' is " + getKindName(item) +
                ", not a tensor");
  return tracer.materialize(*this, *item.tensor);
}

Value Call::optional(StringRef name) {
  return has(name) ? tensor(name) : nullptr;
}

SmallVector<Value> Call::tensors(StringRef name) {
  SmallVector<Value> values;
  for (const Item &item : *get(name).items)
    values.push_back(item.is(Kind::tensor)
                         ? tracer.materialize(*this, *item.tensor)
                         : nullptr);
  return values;
}

Value Call::toIndices(Value x) {
  if (!x || !isa<FloatType>(elementType(x)))
    return x;
  if (!tracer.noteIndices(x))
    return fail("the indices are floats");
  return cast(x, getIndexType());
}

std::optional<AffineExpr> Call::getSize(const Item &item) {
  if (item.is(Kind::integer) || item.is(Kind::boolean))
    return item.size;
  if (item.is(Kind::tensor))
    if (auto known = tracer.getNumber(*item.tensor))
      if (!known->is(Kind::real))
        return known->size;
  if (item.is(Kind::tensor))
    unsupported("a size or an axis that depends on data");
  else
    fail("an integer is expected, not " + getKindName(item));
  return std::nullopt;
}

AffineExpr Call::extent(StringRef name) {
  auto size = getSize(get(name));
  return size ? *size : getSizes().constant(0);
}

int64_t Call::integer(StringRef name) {
  auto known = graph::getConstant(extent(name));
  if (!known)
    unsupported("argument '" + name + "' that depends on a symbolic dimension");
  return known.value_or(0);
}

graph::Extents Call::sizes(StringRef name) {
  const Item &item = get(name);
  graph::Extents result;
  if (!item.isSequence()) {
    result.push_back(extent(name));
    return result;
  }
  for (const Item &each : *item.items)
    result.push_back(getSize(each).value_or(getSizes().constant(0)));
  return result;
}

SmallVector<int64_t> Call::integers(StringRef name, size_t count) {
  SmallVector<int64_t> result;
  for (AffineExpr size : sizes(name)) {
    auto known = graph::getConstant(size);
    if (!known)
      unsupported("argument '" + name +
                  "' that depends on a symbolic dimension");
    result.push_back(known.value_or(0));
  }
  if (result.size() == 1)
    result.resize(std::max<size_t>(count, 1), result[0]);
  if (count != 0 && result.size() != count) {
    fail("argument '" + name + "' needs " + llvm::Twine(count) + " integers");
    result.resize(count, 1);
  }
  return result;
}

bool Call::isTrue(StringRef name) {
  const Item &item = get(name);
  auto known = item.isNumber() ? getNumber(item) : std::nullopt;
  if (!known)
    fail("argument '" + name + "' is not a known boolean");
  return known.value_or(0) != 0;
}

double Call::real(StringRef name) {
  const Item &item = get(name);
  auto known = item.is(Kind::tensor) ? tracer.getNumber(*item.tensor)
                                     : std::optional(item);
  auto number = known ? getNumber(*known) : std::nullopt;
  if (!number)
    unsupported("argument '" + name + "' that is not a known number");
  return number.value_or(0);
}

std::string Call::text(StringRef name) {
  const Item &item = get(name);
  if (!item.is(Kind::text))
    fail("argument '" + name + "' is " + getKindName(item) + ", not a string");
  return item.text;
}

Type Call::type(StringRef name, Type fallback) {
  if (!has(name))
    return fallback;
  int64_t number = integer(name);
  if (Type type = getElementType(number, getContext()))
    return type;
  unsupported("element type " + llvm::Twine(number) + " of PyTorch");
  return fallback;
}

int64_t Call::wrapAxis(int64_t axis, int64_t rank) {
  // A scalar has axis 0.
  int64_t limit = std::max<int64_t>(rank, 1);
  if (axis >= -limit && axis < limit)
    return axis < 0 ? axis + limit : axis;
  fail("axis " + llvm::Twine(axis) + " is out of range for rank " +
       llvm::Twine(rank));
  return 0;
}

int64_t Call::realAxis(int64_t axis, int64_t rank) {
  if (rank == 0)
    fail("a scalar has no axis");
  return wrapAxis(axis, rank);
}

int64_t Call::axis(StringRef name, int64_t rank) {
  return realAxis(integer(name), rank);
}

SmallVector<int64_t> Call::axes(StringRef name, int64_t rank) {
  SmallVector<int64_t> given;
  if (has(name))
    given = integers(name);
  if (given.empty())
    return llvm::to_vector(llvm::seq<int64_t>(0, rank));
  for (int64_t &axis : given)
    axis = wrapAxis(axis, rank);
  SmallVector<int64_t> sorted(given);
  llvm::sort(sorted);
  if (std::unique(sorted.begin(), sorted.end()) != sorted.end())
    fail("an axis is given twice");
  if (rank == 0)
    given.clear();
  return given;
}

// --- Types -------------------------------------------------------------------

Type Call::getRealType() { return Float32Type::get(getContext()); }
Type Call::getIndexType() { return IntegerType::get(getContext(), 64); }
Type Call::getBoolType() { return IntegerType::get(getContext(), 1); }

namespace {

/// What decides a result's type: floats before integers before booleans.
enum class Category { none, boolean, integer, real };

} // namespace

static Category getCategory(Type type) {
  if (!type)
    return Category::none;
  if (isa<FloatType>(type))
    return Category::real;
  return type.isInteger(1) ? Category::boolean : Category::integer;
}

/// The type that has the values of both.
static Type join(Type a, Type b) {
  if (!a || a == b)
    return b ? b : a;
  if (!b)
    return a;
  if (getCategory(a) != getCategory(b))
    return getCategory(a) < getCategory(b) ? b : a;
  unsigned left = a.getIntOrFloatBitWidth(), right = b.getIntOrFloatBitWidth();
  if (left != right && a.isUnsignedInteger() == b.isUnsignedInteger())
    return left < right ? b : a;
  if (isa<FloatType>(a)) // f16 and bf16
    return Float32Type::get(a.getContext());
  if (a.isUnsignedInteger() && left >= right)
    return IntegerType::get(a.getContext(), 2 * left);
  if (b.isUnsignedInteger() && right >= left)
    return IntegerType::get(a.getContext(), 2 * right);
  return left < right ? b : a;
}

Type Call::promote(ArrayRef<const Item *> items) {
  Type types[3]; // of tensors with axes, scalars, numbers
  for (const Item *item : items) {
    int tier = 2;
    Type type;
    if (item->is(Kind::tensor) && !item->tensor->number) {
      Value value = tracer.materialize(*this, *item->tensor);
      tier = rank(value) > 0 ? 0 : 1;
      type = elementType(value);
    } else {
      const Item &number =
          item->is(Kind::tensor) ? *item->tensor->number : *item;
      type = number.is(Kind::real)      ? getRealType()
             : number.is(Kind::boolean) ? getBoolType()
                                        : getIndexType();
    }
    types[tier] = join(types[tier], type);
  }
  Type result = types[0];
  for (Type type : ArrayRef(types).drop_front())
    if (getCategory(type) > getCategory(result))
      result = type;
  return result ? result : getRealType();
}

Value Call::castTo(Value x, Type type) {
  if (!x || !type || !type.isInteger(1) || elementType(x).isInteger(1))
    return cast(x, type);
  return compare(graph::CompareKind::ne, x, constantLike(0, x));
}

Value Call::operand(const Item &item, Type type) {
  if (item.is(Kind::tensor))
    return castTo(tracer.materialize(*this, *item.tensor), type);
  if (!item.isNumber())
    return fail("a tensor or a number is expected, not " + getKindName(item));
  if (auto known = aten::getNumber(item); known && type.isInteger(1))
    return constant(*known != 0, type);
  if (item.is(Kind::real)) {
    bool fits = std::abs(item.number) < 0x1p63; // false for NaN
    return isa<FloatType>(type) || fits
               ? constant(item.number, type)
               : fail("a number does not fit the element type");
  }
  if (auto known = graph::getConstant(item.size)) {
    if (isa<FloatType>(type))
      return constant(double(*known), type);
    auto tensor = RankedTensorType::get({}, type);
    return content({item.size}, tensor);
  }
  return castTo(size(item.size), type);
}

SmallVector<Value> Call::operands(ArrayRef<StringRef> names, bool isReal) {
  SmallVector<const Item *> items;
  for (StringRef name : names)
    items.push_back(&get(name));
  Type type = promote(items);
  if (isReal && !isa<FloatType>(type))
    type = getRealType();
  SmallVector<Value> values;
  for (const Item *item : items)
    values.push_back(operand(*item, type));
  return values;
}

Value Call::toReal(Value x) {
  return !x || isa<FloatType>(elementType(x)) ? x : cast(x, getRealType());
}

// --- Results -----------------------------------------------------------------

void Call::give(Value value, bool isDense) {
  if (!value) {
    fail("the operands do not fit");
    return;
  }
  results.push_back(Item::of(tracer.makeVariable(value)));
  results.back().tensor->isDense = isDense;
}

void Call::giveSame(StringRef name) { results.push_back(get(name)); }

} // namespace tcc::aten
