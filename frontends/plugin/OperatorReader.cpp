#include "frontends/plugin/OperatorReader.h"

#include "frontends/plugin/ElementTypes.h"
#include "frontends/plugin/ReadSchema.h"
#include "runtime/package/Digest.h"
#include "runtime/package/Format.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ConvertUTF.h"
#include <cstring>

namespace tcc::plugin {

using graph::CodeForm;
using llvm::StringRef;

static constexpr size_t kMaxText = 64 << 10, kMaxKernels = 256, kMaxCodes = 16,
                        kMaxCode = 64 << 20;
/// The targets that kernels may be for.
static constexpr StringRef kHost = TCC_OP_CPU, kDevice = TCC_OP_CUDA;

void OperatorReader::report(const llvm::Twine &message) {
  problems.add(
      {ProblemClass::badBytes, "", "", (subject + ": " + message).str(), path});
  isValid = false;
}

// --- Texts -------------------------------------------------------------------

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

/// A short word that must be there.
std::string OperatorReader::readName(const char *text, StringRef field) {
  auto given = readText(text, field);
  bool isName = given && !given->empty() && given->size() <= 256 &&
                llvm::all_of(*given, [](char c) {
                  return llvm::isAlnum(c) || StringRef("_.-$").contains(c);
                });
  if (!isName)
    report(field + ": is no name" +
           (given ? ": '" + given->take_front(40) + "'" : llvm::Twine()));
  return isName ? given->str() : "";
}

void OperatorReader::readExpression(const char *text, StringRef field,
                                    const char *fallback, Operator &op,
                                    std::vector<Expression> &expressions) {
  readExpressions(text ? text : fallback, field, op, expressions);
  if (isValid && expressions.size() != 1)
    report(field + ": is missing, or several");
}

// --- Kernels -----------------------------------------------------------------

/// "f32, i64 -> f32".
void OperatorReader::readTypes(const char *text, const Operator &op,
                               Kernel &kernel) {
  auto given = readText(text, "types");
  if (!given)
    return report("types: are missing");
  auto split = [&](StringRef list, std::vector<std::string> &types) {
    llvm::SmallVector<StringRef> parts;
    list.trim().split(parts, ',', -1, /*KeepEmpty=*/false);
    for (StringRef part : parts) {
      if (!findElementType(part.trim()))
        report("types: '" + part.trim() + "' is no element type");
      types.push_back(part.trim().str());
    }
  };
  auto [arguments, results] = given->split("->");
  split(arguments, kernel.arguments);
  split(results, kernel.results);
  size_t count =
      llvm::count_if(op.schema.parameters, [](const auto &parameter) {
        return parameter.type == "Tensor";
      });
  if (kernel.arguments.size() > count ||
      kernel.results.size() != op.resultCount)
    report("types: '" + *given + "' is not of " + llvm::Twine(count) +
           " arguments and " + llvm::Twine(op.resultCount) + " results");
}

void OperatorReader::readCode(const tcc_op_code_v1 &given, Kernel &kernel) {
  if (given.bytes_of_this != sizeof(given))
    return report("code: is " + llvm::Twine(given.bytes_of_this) +
                  " bytes long, expected " + llvm::Twine(sizeof(given)));
  auto form = graph::symbolizeCodeForm(given.form);
  bool isObject = form == CodeForm::object;
  if (!form || isObject != (kernel.target == kHost))
    return report("code: has form " + llvm::Twine(given.form) + ", expected " +
                  (kernel.target == kHost
                       ? "TCC_OP_OBJECT"
                       : "TCC_OP_NVVM, TCC_OP_PTX or TCC_OP_CUBIN"));
  KernelCode code;
  code.form = *form;
  code.machine = readName(given.machine, "machine");
  size_t size = given.end - given.begin;
  if (!given.begin || given.end <= given.begin || size > kMaxCode)
    return report("code: is missing, or longer than 64 MiB");
  code.bytes = StringRef(given.begin, size);
  auto bytes = std::as_bytes(std::span(given.begin, size));
  code.name = "code_" + llvm::toHex(runtime::digestOf(bytes).bytes,
                                    /*LowerCase=*/true);
  kernel.codes.push_back(std::move(code));
}

/// A kernel's codes are all made into code of the program, or none is.
void OperatorReader::checkForms(const Kernel &kernel) {
  auto count = [&](CodeForm form) {
    return size_t(llvm::count_if(kernel.codes, [&](const KernelCode &code) {
      return code.form == form;
    }));
  };
  size_t texts = count(CodeForm::ptx),
         finished = texts + count(CodeForm::cubin);
  if (texts > 1)
    report("codes: are " + llvm::Twine(texts) + " of TCC_OP_PTX, expected one");
  if (finished != 0 && finished != kernel.codes.size())
    report("codes: are finished code and others; make these another kernel");
  if (finished == 0 && kernel.sharedBytes != 0)
    report("shared_bytes: are " + llvm::Twine(kernel.sharedBytes) +
           ", expected 0: only PTX and cubins have them");
}

/// What a CPU and a GPU do not have in common.
void OperatorReader::readBlock(const tcc_op_kernel_v1 &given, Kernel &kernel) {
  kernel.threads = given.threads;
  kernel.sharedBytes = given.shared_bytes;
  if (kernel.target == kHost && given.threads != 0)
    report("threads: are " + llvm::Twine(given.threads) +
           ", expected 0 for a CPU");
  if (kernel.target != kDevice)
    return;
  if (given.threads == 0 || given.threads > format::kMaxBlockThreads ||
      given.threads % format::kWarpSize != 0)
    report("threads: are " + llvm::Twine(given.threads) +
           ", expected a multiple of 32 up to 1024");
  if (given.scratch)
    report("scratch: is for CPUs alone");
}

void OperatorReader::readKernel(const tcc_op_kernel_v1 &given, Operator &op) {
  if (given.bytes_of_this != sizeof(given))
    return report("kernel: is " + llvm::Twine(given.bytes_of_this) +
                  " bytes long, expected " + llvm::Twine(sizeof(given)));
  Kernel kernel;
  kernel.target = readName(given.target, "target");
  kernel.symbol = readName(given.symbol, "symbol");
  if (!kernel.target.empty() && kernel.target != kHost &&
      kernel.target != kDevice)
    report("target: is '" + kernel.target + "', expected '" + kHost + "' or '" +
           kDevice + "'");
  readBlock(given, kernel);
  readTypes(given.types, op, kernel);
  readExpressions(given.sizes, "sizes", op, kernel.sizes);
  readExpression(given.tasks, "tasks", nullptr, op, kernel.tasks);
  readExpression(given.scratch, "scratch", "0", op, kernel.scratch);
  if (!given.codes || given.code_count == 0 || given.code_count > kMaxCodes)
    return report("kernel: has " + llvm::Twine(given.code_count) +
                  " codes, expected 1 to " + llvm::Twine(kMaxCodes));
  for (size_t i = 0; i < given.code_count; ++i)
    readCode(given.codes[i], kernel);
  checkForms(kernel);
  op.kernels.push_back(std::move(kernel));
}

// --- All ---------------------------------------------------------------------

bool OperatorReader::readSignature(const tcc_op_v1 &given, Operator &op) {
  op.plugin = path;
  op.since = given.since;
  auto schema = readText(given.schema, "schema");
  if (!schema) {
    if (isValid)
      report("schema: is missing");
    return false;
  }
  op.text = schema->str();
  if (auto error = readSchema(op)) {
    report("schema: " + *error);
    return false;
  }
  subject = op.name;
  if (given.since < 1)
    report("since: is 0, expected a version from 1 on");
  return true;
}

std::unique_ptr<Operator> OperatorReader::read(const tcc_op_v1 &given) {
  if (given.bytes_of_this != sizeof(given)) {
    report("is " + llvm::Twine(given.bytes_of_this) + " bytes long, expected " +
           llvm::Twine(sizeof(given)));
    return nullptr;
  }
  auto op = std::make_unique<Operator>();
  if (!readSignature(given, *op))
    return nullptr;
  readExpressions(given.checks, "checks", *op, op->checks);
  readExpressions(given.shapes, "shapes", *op, op->shapes);
  if (!op->shapes.empty() && op->shapes.size() != op->resultCount)
    report("shapes: has " + llvm::Twine(op->shapes.size()) +
           " shapes, expected " + llvm::Twine(op->resultCount));
  op->examples = readText(given.examples, "examples").value_or("").str();
  if (given.flops)
    readExpression(given.flops, "flops", nullptr, *op, op->flops);
  size_t count = op->schema.parameters.size();
  op->body = readFunction(given.body, "body", count, *op);
  op->gradient = readFunction(given.gradient, "gradient",
                              count + 2 * op->resultCount, *op);
  if (given.kernel_count > kMaxKernels ||
      (given.kernel_count && !given.kernels))
    report("has " + llvm::Twine(given.kernel_count) + " kernels, at most " +
           llvm::Twine(kMaxKernels));
  else
    for (size_t i = 0; i < given.kernel_count; ++i)
      readKernel(given.kernels[i], *op);
  if (isValid && !op->body && op->kernels.empty())
    report("has neither a body nor kernels: nothing computes it");
  if (isValid && !op->kernels.empty() && op->shapes.empty())
    report("has kernels, but no shapes");
  return isValid ? std::move(op) : nullptr;
}

} // namespace tcc::plugin
