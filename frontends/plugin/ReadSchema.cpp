#include "frontends/plugin/ReadSchema.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

namespace tcc::plugin {

using llvm::StringRef;

namespace {

/// Takes a schema apart from the left.
class Reader {
public:
  explicit Reader(StringRef text) : rest(text) {}

  bool readHead(Operator &op);
  bool readParameters(aten::Schema &schema);
  bool readResults(size_t &count);
  std::string getError() const {
    return error + ", found '" + rest.take_front(20).str() + "'";
  }

private:
  bool fail(const llvm::Twine &what) {
    error = (what + " is expected").str();
    return false;
  }
  bool expect(StringRef sign) {
    rest = rest.ltrim();
    return rest.consume_front(sign) || fail("'" + sign + "'");
  }
  bool at(StringRef sign) {
    rest = rest.ltrim();
    return rest.starts_with(sign);
  }
  bool takeName(StringRef &name, bool hasDots = false);
  bool takeType(StringRef &type);
  bool takeDefault(aten::Parameter &parameter);

  StringRef rest;
  std::string error;
};

} // namespace

bool Reader::takeName(StringRef &name, bool hasDots) {
  rest = rest.ltrim();
  name = rest.take_while([&](char c) {
    return llvm::isAlnum(c) || c == '_' || (hasDots && c == '.');
  });
  if (name.empty() || llvm::isDigit(name[0]))
    return fail("a name");
  rest = rest.drop_front(name.size());
  return true;
}

bool Reader::readHead(Operator &op) {
  StringRef domain, name;
  if (!takeName(domain, true) || !expect("::") || !takeName(name) ||
      !expect("("))
    return false;
  op.name = (domain + "::" + name).str();
  return true;
}

bool Reader::takeType(StringRef &type) {
  constexpr StringRef kTypes[] = {"Tensor?", "Tensor", "int[]", "int",
                                  "float[]", "float",  "bool",  "str"};
  rest = rest.ltrim();
  for (StringRef each : kTypes)
    if (rest.starts_with(each)) {
      type = rest.take_front(each.size());
      rest = rest.drop_front(each.size());
      // "Tensor(a!) x" is one that the operator writes to.
      return rest.starts_with(" ") || fail("a space behind '" + each + "'");
    }
  return fail("Tensor, Tensor?, int, float, bool, str, int[] or float[]");
}

/// What stands behind a parameter's '='.
bool Reader::takeDefault(aten::Parameter &parameter) {
  if (rest.starts_with("\"") || rest.starts_with("'")) {
    size_t end = rest.find(rest[0], 1);
    if (end == StringRef::npos || parameter.type != "str")
      return fail("a default of the parameter's type");
    parameter.fallback = rest.slice(1, end);
    rest = rest.drop_front(end + 1);
    return true;
  }
  size_t end =
      rest.starts_with("[") ? rest.find(']') + 1 : rest.find_first_of(",) ");
  if (end == 0 || end > rest.size())
    return fail("a default");
  StringRef text = rest.take_front(end);
  int64_t integer;
  double real;
  bool fits = llvm::StringSwitch<bool>(parameter.type)
                  .Case("Tensor", text == "None" && parameter.isOptional)
                  .Case("int", !text.getAsInteger(10, integer))
                  .Case("float", !text.getAsDouble(real))
                  .Case("bool", text == "True" || text == "False")
                  .Cases("int[]", "float[]", text == "[]")
                  .Default(false);
  if (!fits)
    return fail("a default of the parameter's type");
  parameter.fallback = text;
  rest = rest.drop_front(end);
  return true;
}

bool Reader::readParameters(aten::Schema &schema) {
  llvm::StringSet<> names;
  bool isKeyword = false;
  while (!at(")")) {
    aten::Parameter parameter;
    if (at("*")) {
      rest = rest.drop_front();
      isKeyword = true;
    } else {
      if (!takeType(parameter.type) || !takeName(parameter.name))
        return false;
      parameter.isOptional = parameter.type.consume_back("?");
      parameter.isKeyword = isKeyword;
      if (!names.insert(parameter.name).second)
        return fail("another name than '" + parameter.name + "'");
      if (rest.consume_front("=") && !takeDefault(parameter))
        return false;
      schema.parameters.push_back(parameter);
    }
    if (!at(")") && !expect(","))
      return false;
  }
  return expect(")") && expect("->");
}

/// "Tensor", "(Tensor, Tensor)", "(Tensor y, Tensor z)".
bool Reader::readResults(size_t &count) {
  bool isList = at("(");
  if (isList)
    rest = rest.drop_front();
  for (count = 0; count == 0 || (isList && at(",")); ++count) {
    StringRef name;
    if ((count && !expect(",")) || !expect("Tensor"))
      return false;
    if (rest.starts_with("(") || rest.starts_with("["))
      return fail("a plain Tensor");
    bool hasName = isList && !at(",") && !at(")");
    if (hasName && !takeName(name))
      return false;
  }
  if (isList && !expect(")"))
    return false;
  rest = rest.trim();
  return rest.empty() || fail("the end");
}

/// Names that have a meaning of their own.
static bool isTaken(StringRef domain) {
  return domain.starts_with("ai.onnx") || domain.starts_with("com.microsoft") ||
         domain == "aten" || domain == "prim" || domain == "prims" ||
         domain == "higher_order";
}

std::optional<std::string> readSchema(Operator &op) {
  Reader reader(op.text);
  op.schema = {};
  if (!reader.readHead(op) || !reader.readParameters(op.schema) ||
      !reader.readResults(op.resultCount))
    return reader.getError();
  op.schema.name = op.name;
  auto [domain, name] = StringRef(op.name).split("::");
  if (isTaken(domain))
    return "domain '" + domain.str() + "' is not for plugins";
  if (name.ends_with("_"))
    return "'" + name.str() +
           "' is the name of an operator in place; those of plugins are "
           "functions";
  return std::nullopt;
}

} // namespace tcc::plugin
