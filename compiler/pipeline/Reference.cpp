#include "compiler/pipeline/Reference.h"

#include "compiler/codegen/region/RegionFrame.h"
#include "compiler/codegen/region/SimplifyRegion.h"
#include "compiler/package/EntryBuilder.h"
#include "compiler/passes/graph/BindSymbols.h"
#include "compiler/pipeline/Phases.h"
#include "compiler/pipeline/Provenance.h"
#include "compiler/pipeline/Refusal.h"
#include "compiler/pipeline/Register.h"
#include "dialects/exec/ExecOps.h"
#include "dialects/graph/Variants.h"
#include "dialects/graph/evaluate/Evaluator.h"
#include "frontends/plugin/Operator.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include <cstring>

using namespace mlir;
using namespace tcc;
using runtime::Code;
using runtime::makeError;
using runtime::Result;
using runtime::Status;
using runtime::Tensor;

struct Reference::Modules {
  MLIRContext context;
  Model model;
  OwningOpRef<ModuleOp> program; // of the exec dialect
  llvm::StringMap<graph::FusedOp> kernels;

  Modules() : context(makeRegistry()) { context.loadAllAvailableDialects(); }

  static DialectRegistry makeRegistry() {
    DialectRegistry registry;
    registerAllTccDialects(registry);
    registerEvaluatorDialects(registry);
    return registry;
  }
  Status import(const CompileOptions &options);
  Status compile(CompileOptions options);
};

Reference::Reference(std::unique_ptr<Modules> modules)
    : modules(std::move(modules)) {}
Reference::~Reference() = default;

Status Reference::Modules::import(const CompileOptions &options) {
  Problems problems(options.model);
  auto imported =
      importModel(options.model, options.import, &context, problems);
  if (failed(imported)) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    problems.print(stream);
    return Status(getCode(problems), llvm::StringRef(text).rtrim().str());
  }
  model = std::move(*imported);
  if (!model.variants.empty() &&
      failed(bindVariants(*model.module, model.variants)))
    return Status(Code::Unsupported, "the model has no such sizes");
  if (options.gradientOf.empty())
    return Status();
  PassManager pm(&context);
  addRecognition(pm);
  addDifferentiation(pm, {options.gradientOf, options.gradientWrt});
  if (failed(pm.run(*model.module)))
    return Status(Code::Unsupported, "the model has no such gradients");
  return Status();
}

/// Libraries that the package was not made with have other operators.
static Status checkPlugins(llvm::ArrayRef<std::string> given,
                           llvm::ArrayRef<PluginRecord> recorded) {
  llvm::StringSet<> digests;
  for (const std::string &path : given) {
    std::string reason;
    std::optional<std::string> digest = plugin::digestLibrary(path, reason);
    if (!digest)
      return makeError(Code::Io, path, ": cannot be read: ", reason);
    digests.insert(*digest);
  }
  for (const PluginRecord &plugin : recorded)
    if (!digests.contains(plugin.digest))
      return makeError(Code::Usage, "the package was made with plugin '",
                       plugin.name, "' ", plugin.version, ", digest ",
                       plugin.digest, ": give it as --plugin");
  return Status();
}

/// By way of the text of the program: what the compiler makes of the model is
/// its own affair.
Status Reference::Modules::compile(CompileOptions options) {
  llvm::SmallString<64> path;
  if (std::error_code error =
          llvm::sys::fs::createTemporaryFile("tcc", "mlir", path))
    return makeError(Code::Io, "cannot make a file: ", error.message());
  llvm::FileRemover remover(path);
  options.output = path.str().str();
  options.artifact = Artifact::Exec;
  CompileReport report = tcc::compile(options);
  if (report.exitCode != 0)
    return Status(Code(report.exitCode), report.problems.empty()
                                             ? std::string("internal error")
                                             : report.problems.front());
  program = parseSourceFile<ModuleOp>(path, &context);
  if (!program)
    return Status(Code::Internal, "the program cannot be read back");
  for (auto kernel : program->getOps<exec::KernelOp>())
    kernels[kernel.getSymName()] =
        cast<graph::FusedOp>(kernel.getComputation());
  return Status();
}

Result<std::unique_ptr<Reference>>
Reference::create(const std::string &model, std::string_view record,
                  const std::vector<std::string> &plugins) {
  CompileOptions options;
  options.model = model;
  options.import.plugins = plugins;
  std::vector<PluginRecord> recorded;
  if (!readOptions(record, options, recorded))
    return makeError(Code::BadData, "the package's record of its options has "
                                    "what this compiler does not know");
  if (Status status = checkPlugins(plugins, recorded); !status.ok())
    return status;
  auto modules = std::make_unique<Modules>();
  if (Status status = modules->import(options); !status.ok())
    return status;
  if (Status status = modules->compile(options); !status.ok())
    return status;
  return std::unique_ptr<Reference>(new Reference(std::move(modules)));
}

// --- Tensors ---

static Result<std::vector<Tensor>>
toTensors(llvm::Expected<Evaluator::Tensors> evaluated) {
  if (!evaluated)
    return Status(Code::Unsupported, toString(evaluated.takeError()));
  std::vector<Tensor> tensors;
  for (const HostTensor &from : *evaluated) {
    auto tensor = Tensor::allocate(
        package::getDType(from.type.getElementType()), from.shape().vec());
    if (!tensor.ok())
      return tensor.takeStatus();
    std::vector<char> bytes = makeBytes(from);
    if (!bytes.empty())
      std::memcpy(tensor->data.data(), bytes.data(), bytes.size());
    tensors.push_back(std::move(*tensor));
  }
  return tensors;
}

static llvm::Expected<HostTensor> readTensor(Type type, const void *data,
                                             llvm::ArrayRef<int64_t> symbols) {
  auto tensor = cast<RankedTensorType>(type);
  SmallVector<int64_t> shape;
  for (AffineExpr extent : graph::getExtents(tensor))
    shape.push_back(graph::evaluate(extent, symbols));
  tensor = RankedTensorType::get(shape, tensor.getElementType());
  return readBytes(tensor, llvm::ArrayRef(static_cast<const char *>(data),
                                          getByteSize(tensor)));
}

/// The values of a kernel's symbols: a launch gives those that its code uses,
/// in their order. Nothing if the computation has others.
static std::optional<SmallVector<int64_t>>
findSymbols(graph::FusedOp fused, std::span<const int64_t> sizes) {
  auto region = codegen::simplifyRegion(fused);
  if (failed(region))
    return std::nullopt;
  SmallVector<unsigned> used = codegen::getUsedSymbols(region->get());
  if (used.size() != sizes.size() ||
      llvm::any_of(codegen::getUsedSymbols(fused), [&](unsigned symbol) {
        return !llvm::is_contained(used, symbol);
      }))
    return std::nullopt;
  SmallVector<int64_t> symbols(used.empty() ? 0 : used.back() + 1);
  for (auto [symbol, size] : llvm::zip_equal(used, sizes))
    symbols[symbol] = size;
  return symbols;
}

Result<std::vector<Tensor>>
Reference::evaluateKernel(std::string_view kernel,
                          std::span<void *const> buffers,
                          std::span<const int64_t> sizes) const {
  graph::FusedOp fused = modules->kernels.lookup(kernel);
  if (!fused || fused->getNumOperands() > buffers.size())
    return makeError(Code::Usage, "the compiler makes no kernel '", kernel,
                     "' of this model: the package is of another one, or of "
                     "another compiler");
  auto symbols = findSymbols(fused, sizes);
  if (!symbols)
    return makeError(Code::Unsupported, "its sizes are not those of a launch");
  Evaluator::Tensors inputs;
  for (auto [i, type] : llvm::enumerate(fused->getOperandTypes())) {
    auto input = readTensor(type, buffers[i], *symbols);
    if (!input)
      return Status(Code::Unsupported, toString(input.takeError()));
    inputs.push_back(std::move(*input));
  }
  return toTensors(Evaluator(*symbols).evaluate(fused, inputs));
}

/// The variant whose fixed extents are those of the inputs.
static func::FuncOp findMain(ModuleOp module, std::span<const Tensor> inputs) {
  SmallVector<func::FuncOp> mains = graph::getMains(module);
  auto takes = [](Type type, const Tensor &input) {
    auto shape = cast<RankedTensorType>(type).getShape();
    return llvm::equal(shape, input.shape, [](int64_t own, int64_t given) {
      return ShapedType::isDynamic(own) || own == given;
    });
  };
  for (func::FuncOp main : mains)
    if (llvm::all_of(llvm::zip(main.getArgumentTypes(), inputs),
                     [&](auto pair) {
                       return takes(std::get<0>(pair), std::get<1>(pair));
                     }))
      return main;
  return mains.front();
}

Result<std::vector<Tensor>>
Reference::evaluateModel(std::span<const Tensor> inputs,
                         std::span<const int64_t> slots) const {
  llvm::ArrayRef<int64_t> symbols(slots.data(), slots.size());
  func::FuncOp main = findMain(*modules->model.module, inputs);
  Evaluator::Tensors tensors;
  for (auto [type, input] : llvm::zip(main.getArgumentTypes(), inputs)) {
    auto tensor = readTensor(type, input.data.data(), symbols);
    if (!tensor)
      return Status(Code::Unsupported, toString(tensor.takeError()));
    tensors.push_back(std::move(*tensor));
  }
  const WeightStore &weights = modules->model.weights;
  auto readWeight = [&weights](llvm::StringRef name, RankedTensorType type) {
    return readBytes(type, weights.find(name)->bytes);
  };
  return toTensors(Evaluator(symbols, readWeight).evaluate(main, tensors));
}
