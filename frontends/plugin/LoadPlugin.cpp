//===- LoadPlugin.cpp - From a library to operators -----------------------===//

#include "frontends/MappedFile.h"
#include "frontends/plugin/ReadSchema.h"
#include "runtime/package/Digest.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ConvertUTF.h"
#include <cstring>
#include <dlfcn.h>

namespace tcc::plugin {

using llvm::StringRef;

static constexpr size_t kMaxText = 64 << 10, kMaxOperators = 4096;

namespace {

/// Reads one operator's description; what is wrong goes to the problems.
class OperatorReader {
public:
  OperatorReader(const std::string &path, size_t number, Problems &problems)
      : path(path), subject("operator " + std::to_string(number)),
        problems(problems) {}

  std::unique_ptr<Operator> read(const tcc_op_v1 &given);
  void report(const llvm::Twine &message) {
    problems.add({ProblemClass::badBytes, "", "",
                  (subject + ": " + message).str(), path});
    isValid = false;
  }

private:
  std::optional<StringRef> readText(const char *text, StringRef field);
  void readExpressions(const char *text, StringRef field, Operator &op,
                       std::vector<Expression> &expressions);
  const torchscript::Node *readFunction(const char *text, StringRef field,
                                        size_t parameterCount, Operator &op);

  const std::string &path;
  std::string subject;
  Problems &problems;
  bool isValid = true;
};

} // namespace

/// Nothing for a null one, and after reporting.
std::optional<StringRef> OperatorReader::readText(const char *text,
                                                  StringRef field) {
  if (!text)
    return std::nullopt;
  size_t length = strnlen(text, kMaxText + 1);
  if (length > kMaxText) {
    report(field + ": is longer than " + llvm::Twine(kMaxText) + " bytes");
    return std::nullopt;
  }
  auto *first = reinterpret_cast<const llvm::UTF8 *>(text);
  if (!llvm::isLegalUTF8String(&first, first + length)) {
    report(field + ": is no UTF-8");
    return std::nullopt;
  }
  return StringRef(text, length);
}

void OperatorReader::readExpressions(const char *text, StringRef field,
                                     Operator &op,
                                     std::vector<Expression> &expressions) {
  auto given = readText(text, field);
  if (!given)
    return;
  std::vector<std::string> names;
  for (const aten::Parameter &parameter : op.schema.parameters)
    names.push_back(parameter.name.str());
  llvm::SmallVector<StringRef> parts;
  given->split(parts, ';');
  for (StringRef part : parts) {
    part = part.trim(); // an indent would begin a block
    std::string error;
    const torchscript::Node *function = op.code.addExpression(
        part, names, op.name + ", '" + part.str() + "'", error);
    if (!function)
      report(field + ": " + error + ", in '" + part + "'");
    else
      expressions.push_back({part.str(), function});
  }
}

const torchscript::Node *OperatorReader::readFunction(const char *text,
                                                      StringRef field,
                                                      size_t parameterCount,
                                                      Operator &op) {
  auto given = readText(text, field);
  if (!given)
    return nullptr;
  std::string error, file = (op.name + ", " + field).str();
  if (!op.code.add(*given, file, error)) {
    report(field + ": " + error);
    return nullptr;
  }
  const torchscript::Node *function = op.code.find(field);
  if (!function || function->kind != torchscript::Node::Kind::function)
    report(field + ": has no function '" + field + "'");
  else if (function->size() != parameterCount + 1) // and its block
    report(field + ": has " + llvm::Twine(function->size() - 1) +
           " parameters, expected " + llvm::Twine(parameterCount));
  return function;
}

std::unique_ptr<Operator> OperatorReader::read(const tcc_op_v1 &given) {
  if (given.bytes_of_this != sizeof(given)) {
    report("is " + llvm::Twine(given.bytes_of_this) + " bytes long, expected " +
           llvm::Twine(sizeof(given)));
    return nullptr;
  }
  auto op = std::make_unique<Operator>();
  op->plugin = path;
  op->since = given.since;
  auto schema = readText(given.schema, "schema");
  if (!schema) {
    if (isValid)
      report("schema: is missing");
    return nullptr;
  }
  op->text = schema->str();
  if (auto error = readSchema(*op)) {
    report("schema: " + *error);
    return nullptr;
  }
  subject = op->name;
  if (given.since < 1)
    report("since: is 0, expected a version from 1 on");
  readExpressions(given.checks, "checks", *op, op->checks);
  readExpressions(given.shapes, "shapes", *op, op->shapes);
  if (!op->shapes.empty() && op->shapes.size() != op->resultCount)
    report("shapes: has " + llvm::Twine(op->shapes.size()) +
           " shapes, expected " + llvm::Twine(op->resultCount));
  op->body =
      readFunction(given.body, "body", op->schema.parameters.size(), *op);
  if (!op->body && isValid)
    report("has no body: nothing computes it");
  return isValid ? std::move(op) : nullptr;
}

// --- Libraries ---------------------------------------------------------------

static void report(const std::string &path, ProblemClass kind,
                   const llvm::Twine &message, Problems &problems) {
  problems.add({kind, "", "", message.str(), path});
}

void Operators::add(const std::string &path, const tcc_plugin_v1 &plugin,
                    Problems &problems) {
  auto refuse = [&](const llvm::Twine &message) {
    report(path, ProblemClass::badBytes, message, problems);
  };
  if (plugin.abi != TCC_OP_ABI || plugin.bytes_of_this != sizeof(plugin))
    return refuse("is for version " + llvm::Twine(plugin.abi) +
                  " of tcc/op.h with descriptions of " +
                  llvm::Twine(plugin.bytes_of_this) +
                  " bytes, expected version " + llvm::Twine(TCC_OP_ABI) +
                  " with " + llvm::Twine(sizeof(plugin)));
  for (const char *text : {plugin.name, plugin.version})
    if (!text || strnlen(text, 257) > 256)
      return refuse("name and version: are missing or longer than 256 bytes");
  if (plugin.operator_count > kMaxOperators)
    return refuse("lists " + llvm::Twine(plugin.operator_count) +
                  " operators, at most " + llvm::Twine(kMaxOperators));
  if (!plugin.operators || plugin.operator_count == 0)
    return refuse("lists no operators");
  plugins.push_back({path, plugin.name, plugin.version, ""});
  for (size_t i = 0; i < plugin.operator_count; ++i) {
    OperatorReader reader(path, i, problems);
    auto op = reader.read(plugin.operators[i]);
    if (!op)
      continue;
    auto &slot = operators[op->name][op->since];
    if (slot)
      reader.report("is there twice, also in " + slot->plugin);
    else
      slot = std::move(op);
  }
}

std::optional<std::string> digestLibrary(const std::string &path,
                                         std::string &reason) {
  auto file = mapFile(path, reason);
  if (!file)
    return std::nullopt;
  auto bytes = std::as_bytes(std::span(file->bytes));
  return llvm::toHex(runtime::digestOf(bytes).bytes, /*LowerCase=*/true);
}

void Operators::load(const std::string &path, Problems &problems) {
  std::string reason;
  auto digest = digestLibrary(path, reason);
  if (!digest)
    return report(path, ProblemClass::io, "cannot be read: " + reason,
                  problems);
  // A name without a slash would be looked for elsewhere.
  std::string place = StringRef(path).contains('/') ? path : "./" + path;
  void *library = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return report(path, ProblemClass::badBytes,
                  llvm::Twine("cannot be opened: ") + dlerror(), problems);
  auto *plugin =
      static_cast<const tcc_plugin_v1 *>(dlsym(library, "tcc_plugin"));
  if (!plugin)
    return report(path, ProblemClass::badBytes,
                  "exports no tcc_plugin: it is no plugin of tcc", problems);
  size_t count = plugins.size();
  add(path, *plugin, problems);
  if (plugins.size() > count)
    plugins.back().digest = *digest;
}

const Operator *Operators::find(StringRef name, int64_t version) const {
  auto found = operators.find(name);
  if (found == operators.end())
    return nullptr;
  auto behind = found->second.upper_bound(version);
  return behind == found->second.begin() ? nullptr
                                         : std::prev(behind)->second.get();
}

} // namespace tcc::plugin
