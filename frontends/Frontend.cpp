#include "frontends/Frontend.h"

#include "dialects/graph/GraphDialect.h"
#include "dialects/graph/GraphOps.h"
#include "dialects/graph/NodeNames.h"
#include "dialects/graph/evaluate/Evaluator.h"
#include "frontends/Importers.h"
#include "frontends/onnx/Import.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace mlir;

namespace tcc {

void Model::addAliases(ArrayRef<Alias> aliases) {
  llvm::json::Object names;
  for (const Alias &alias : aliases)
    names[alias.name] = alias.tensor;
  if (!names.empty())
    metadata.push_back(
        {"tcc.aliases",
         llvm::formatv("{0}", llvm::json::Value(std::move(names)))});
}

static FailureOr<Model> importArchive(const MappedFile &file,
                                      const ImportOptions &options,
                                      const plugin::Operators &operators,
                                      MLIRContext *context,
                                      Problems &problems) {
  std::string error;
  auto archive = Archive::open(file, error);
  if (!archive) {
    problems.add(ProblemClass::badBytes, error);
    return failure();
  }
  if (pt2::isProgram(*archive))
    return pt2::importArchive(*archive, options, operators, context, problems);
  if (torchscript::isScript(*archive))
    return torchscript::importArchive(*archive, options, operators, context,
                                      problems);
  problems.add(ProblemClass::badBytes, "is a zip file without a model");
  return failure();
}

/// What is not trained has no seed that a run would give.
static void noteDraws(ModuleOp module, std::vector<std::string> &notes) {
  std::string first;
  int64_t count = 0;
  module.walk([&](graph::RandomOp op) {
    if (++count == 1)
      first = getNodeName(op);
  });
  std::string others =
      count > 1 ? " and " + std::to_string(count - 1) + " more" : "";
  if (count > 0)
    notes.push_back("the random numbers of node '" + first + "'" + others +
                    " are the same in each run");
}

/// The bytes tell the format, not the name.
static FailureOr<Model> importFile(const MappedFile &file, StringRef path,
                                   const ImportOptions &options,
                                   const plugin::Operators &operators,
                                   MLIRContext *context, Problems &problems) {
  if (Archive::isArchive(file))
    return importArchive(file, options, operators, context, problems);
  return onnx_import::importFile(file, path, options, operators, context,
                                 problems);
}

FailureOr<Model> importModel(const MappedFile &file, StringRef path,
                             const ImportOptions &options,
                             const plugin::Operators &operators,
                             MLIRContext *context, Problems &problems) {
  DialectRegistry registry;
  registry.insert<graph::GraphDialect, func::FuncDialect>();
  registerEvaluatorDialects(registry);
  context->appendDialectRegistry(registry);
  context->loadAllAvailableDialects();
  FailureOr<Model> model =
      importFile(file, path, options, operators, context, problems);
  if (failed(model))
    return failure();
  if (!options.trains)
    noteDraws(*model->module, model->notes);
  model->path = path.str();
  model->plugins = operators.getPlugins();
  return model;
}

FailureOr<Model> importModel(const MappedFile &file, StringRef path,
                             const ImportOptions &options, MLIRContext *context,
                             Problems &problems) {
  plugin::Operators operators;
  for (const std::string &plugin : options.plugins)
    operators.load(plugin, problems);
  if (!options.usesPluginKernels)
    operators.ignoreKernels();
  if (!problems.empty())
    return failure(); // nodes would lack operators that were refused
  return importModel(file, path, options, operators, context, problems);
}

FailureOr<Model> importModel(StringRef path, const ImportOptions &options,
                             MLIRContext *context, Problems &problems) {
  std::string reason;
  auto file = mapFile(path.str(), reason);
  if (file)
    return importModel(*file, path, options, context, problems);
  problems.add(ProblemClass::io, "cannot be read: " + reason);
  return failure();
}

} // namespace tcc
