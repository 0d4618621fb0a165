// Parameters of a session in files as PyTorch has them.

#include "runtime/package/StateDict.h"
#include "runtime/package/TensorFiles.h"
#include "runtime/train/Checkpoint.h"
#include "runtime/train/TensorMatch.h"

using namespace tcc;
using namespace tcc::runtime;
using format::VariableKind;

Status runtime::exportParameters(const TrainingSession &session,
                                 const std::string &path) {
  const Variables &variables = session.variables();
  auto snapshot = variables.snapshot();
  if (!snapshot.ok())
    return snapshot.takeStatus();
  std::vector<StoredTensor> tensors;
  for (size_t i = 0; i < variables.size(); ++i) {
    const format::Variable &variable = variables.describe(i);
    if (!isOfModel(variable))
      continue;
    if (variable.global_shape())
      return makeError(Code::Unsupported, "'", path,
                       "' would have a part of tensor '",
                       variable.name()->string_view(), "' only");
    std::span<const int64_t> shape = variables.shape(i);
    tensors.push_back({variable.name()->str(),
                       variable.dtype(),
                       {shape.begin(), shape.end()},
                       snapshot->bytes(i)});
  }
  Result<Aliases> aliases = findAliases(session.executable().program());
  if (!aliases.ok())
    return aliases.takeStatus();
  return writeSafetensors(
      path, makeStateDict(std::move(tensors), *aliases, session.batchCount()));
}

Status runtime::initializeFrom(TrainingSession &session,
                               const std::string &path) {
  Result<TensorFiles> file = TensorFiles::open(path);
  if (!file.ok())
    return file.takeStatus();
  MatchOptions options;
  options.isRequired = [](const format::Variable &variable) {
    return variable.kind() == VariableKind::parameter;
  };
  options.isAllowed = isOfModel;
  options.convertsFloats = true;
  Result<Aliases> aliases = findAliases(session.executable().program());
  if (!aliases.ok())
    return aliases.takeStatus();
  auto tensors = readStateDict(file->tensors(), *aliases, path);
  if (!tensors.ok())
    return tensors.takeStatus();
  std::vector<TensorSource> sources = makeSources(*tensors);
  auto matches =
      matchTensors(session.variables(), session.rank(), sources, path, options);
  if (!matches.ok())
    return matches.takeStatus();
  return copyTensors(session.variables(), *matches);
}
