//===- Import.cpp - A TorchScript archive to a module ---------------------===//

#include "frontends/torchscript/Import.h"

#include "frontends/torchscript/Beginning.h"
#include "frontends/torchscript/ScriptImporter.h"

using namespace mlir;

namespace tcc::torchscript {

bool isScript(const Archive &archive) {
  return archive.find("data.pkl") && archive.find("constants.pkl");
}

/// What forward assigns to attributes is known once it has run. An attribute
/// that is a tensor is a state, and one of another kind has the value that it
/// keeps: so the model is imported again until nothing changes. States are zero
/// at first, which must do what the archive's attributes did.
FailureOr<Model> importArchive(const Archive &archive,
                               const ImportOptions &options,
                               MLIRContext *context, Problems &problems) {
  constexpr int kMaxPasses = 4;
  Attributes attributes;
  std::optional<Model> first;
  for (int pass = 0; pass < kMaxPasses; ++pass) {
    ScriptImporter importer(archive, options, context, problems, attributes);
    FailureOr<Model> model = importer.run();
    if (failed(model))
      return failure();
    if (!importer.getChanged()) {
      if (first && !beginAlike(*first, *model, problems))
        return failure();
      return model;
    }
    attributes = *importer.getChanged();
    bool isFirst = pass == 0 && importer.startsOtherwise();
    if (isFirst)
      first = std::move(*model);
  }
  problems.add(ProblemClass::unsupported,
               "forward never leaves in its attributes what it found there");
  return failure();
}

} // namespace tcc::torchscript
