#include "frontends/aten/Schema.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace tcc::aten {

using Kind = Item::Kind;

// --- Types -------------------------------------------------------------------

static bool acceptsAll(const Item &item, Kind kind, bool orNone = false) {
  return item.isSequence() && llvm::all_of(*item.items, [&](const Item &each) {
           return each.is(kind) || (orNone && each.is(Kind::none)) ||
                  (kind == Kind::real && each.is(Kind::integer)) ||
                  // a size that is an element of a tensor
                  (kind == Kind::integer && each.is(Kind::tensor));
         });
}

bool Parameter::accepts(const Item &item) const {
  if (item.is(Kind::none))
    return isOptional;
  bool isTensor = item.is(Kind::tensor);
  if (type == "Tensor")
    return isTensor;
  if (type == "Operand" || type == "Scalar")
    return isTensor || item.isNumber();
  if (type == "int")
    return item.is(Kind::integer) || isTensor;
  if (type == "float")
    return item.is(Kind::real) || item.is(Kind::integer);
  if (type == "bool")
    return item.is(Kind::boolean);
  if (type == "str")
    return item.is(Kind::text);
  if (type == "ScalarType")
    return item.is(Kind::integer);
  if (type == "Tensor[]")
    return acceptsAll(item, Kind::tensor);
  if (type == "Tensor?[]")
    return acceptsAll(item, Kind::tensor, true);
  if (type == "float[]")
    return acceptsAll(item, Kind::real);
  if (type.starts_with("int["))
    return acceptsAll(item, Kind::integer) ||
           (item.is(Kind::integer) && type != "int[]");
  return type == "Any"; // a device, a layout, or what the row checks
}

Item readDefault(llvm::StringRef text, MLIRContext *context) {
  int64_t integer;
  double real;
  if (text == "None")
    return {};
  if (text == "True" || text == "False")
    return Item::ofBoolean(getAffineConstantExpr(text == "True", context));
  if (!text.getAsInteger(10, integer))
    return Item::ofInteger(getAffineConstantExpr(integer, context));
  if (!text.getAsDouble(real))
    return Item::ofReal(real);
  if (text == "[]")
    return Item::ofItems(Kind::list, {});
  return Item::ofText(text.str());
}

// --- Notation ----------------------------------------------------------------

static Parameter parseParameter(llvm::StringRef text) {
  Parameter parameter;
  auto [declaration, fallback] = text.split('=');
  if (!fallback.empty())
    parameter.fallback = fallback;
  std::tie(parameter.type, parameter.name) = declaration.split(' ');
  parameter.isOptional = parameter.type.consume_back("?");
  return parameter;
}

Schema Schema::parse(llvm::StringRef text) {
  Schema schema;
  auto [head, result] = text.split(" -> ");
  auto [name, list] = head.split('(');
  schema.name = name;
  schema.mayCopy = result.contains("(a?)");
  schema.isView = schema.mayCopy || result.contains("(a)");
  schema.isList = result.ends_with("[]");
  llvm::SmallVector<llvm::StringRef> parts;
  list.drop_back().split(parts, ", ", -1, false);
  bool isKeyword = false;
  for (llvm::StringRef part : parts) {
    if (part == "*") {
      isKeyword = true;
      continue;
    }
    schema.parameters.push_back(parseParameter(part));
    schema.parameters.back().isKeyword = isKeyword;
  }
  return schema;
}

std::optional<size_t> Schema::find(llvm::StringRef name) const {
  for (auto [i, parameter] : llvm::enumerate(parameters))
    if (parameter.name == name)
      return i;
  return std::nullopt;
}

} // namespace tcc::aten
