//===- Import.cpp - A TorchScript archive to a module ---------------------===//

#include "frontends/Importers.h"

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
/// at first, which must do what the archive's attributes did. So it is with
/// inputs that turn out to be indices.
FailureOr<Model> importArchive(const Archive &archive,
                               const ImportOptions &options,
                               const plugin::Operators &operators,
                               MLIRContext *context, Problems &problems) {
  constexpr int kMaxPasses = 5;
  aten::ItemScope scope;
  Findings findings;
  std::optional<Model> first;
  for (int pass = 0; pass < kMaxPasses; ++pass) {
    ScriptImporter importer(archive, options, operators, context, problems,
                            findings);
    FailureOr<Model> model = importer.run();
    if (failed(model))
      return failure();
    if (!importer.getChanged()) {
      if (first && !beginAlike(*first, *model, problems))
        return failure();
      return model;
    }
    bool isFirst = findings.attributes.empty() && importer.startsOtherwise();
    findings = *importer.getChanged();
    if (isFirst && !findings.attributes.empty())
      first = std::move(*model);
  }
  problems.add(ProblemClass::unsupported,
               "forward never leaves in its attributes what it found there");
  return failure();
}

} // namespace tcc::torchscript
