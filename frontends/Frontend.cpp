#include "frontends/Frontend.h"

#include "compiler/evaluate/Evaluator.h"
#include "dialects/graph/GraphDialect.h"
#include "frontends/Archive.h"
#include "frontends/onnx/Import.h"
#include "frontends/pt2/Import.h"
#include "frontends/torchscript/Import.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace tcc {

static FailureOr<Model> importArchive(const MappedFile &file,
                                      const ImportOptions &options,
                                      MLIRContext *context,
                                      Problems &problems) {
  std::string error;
  auto archive = Archive::open(file, error);
  if (!archive) {
    problems.add(ProblemClass::badBytes, error);
    return failure();
  }
  if (pt2::isProgram(*archive))
    return pt2::importArchive(*archive, options, context, problems);
  if (torchscript::isScript(*archive))
    return torchscript::importArchive(*archive, options, context, problems);
  problems.add(ProblemClass::badBytes, "is a zip file without a model");
  return failure();
}

/// The bytes tell the format, not the name.
FailureOr<Model> importModel(StringRef path, const ImportOptions &options,
                             MLIRContext *context, Problems &problems) {
  DialectRegistry registry;
  registry.insert<graph::GraphDialect, func::FuncDialect>();
  registerEvaluatorDialects(registry);
  context->appendDialectRegistry(registry);
  context->loadAllAvailableDialects();
  std::string reason;
  auto file = mapFile(path.str(), reason);
  if (!file) {
    problems.add(ProblemClass::io, "cannot be read: " + reason);
    return failure();
  }
  if (Archive::isArchive(*file))
    return importArchive(*file, options, context, problems);
  return onnx_import::importFile(*file, path, options, context, problems);
}

} // namespace tcc
