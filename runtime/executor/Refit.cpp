#include "runtime/executor/Refit.h"

#include "runtime/executor/Prepare.h"
#include "runtime/package/DType.h"
#include "runtime/package/Digest.h"
#include "runtime/package/StateDict.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <unordered_set>

using namespace tcc;
using namespace tcc::runtime;

/// Where tensors without elements lie.
static constexpr std::byte kNothing = {};

namespace {

/// One replacement: which model tensors are given, which constants change.
class Refit {
public:
  Refit(const RefitTarget &target, const ExecutableOptions &options)
      : target(target), options(options), program(target.package.program()),
        given(modelCount()), held(modelCount()), fresh(constCount()),
        isPlanned(constCount()) {}

  Status run();

private:
  size_t modelCount() const {
    return program.model_tensors() ? program.model_tensors()->size() : 0;
  }
  size_t constCount() const {
    return program.weights() ? program.weights()->size() : 0;
  }
  Status match(std::span<const StoredTensor> tensors);
  Status checkTensor(const format::ModelTensor &model,
                     const StoredTensor &tensor) const;
  Status refuseWithout(std::string_view tensor) const;
  Status replaceHeld();
  Status planPrepared();
  Status planConstant(uint32_t index);
  Status allocate(uint32_t index);
  Status prepare();

  const RefitTarget &target;
  const ExecutableOptions &options;
  const format::Program &program;
  std::vector<const StoredTensor *> given; ///< per model tensor, or null
  std::vector<const void *> held;          ///< its bytes, or null if not there
  std::vector<std::byte *> fresh;          ///< per constant: its new bytes
  std::vector<bool> isPlanned;             ///< per constant: prepare makes it
};

Status Refit::run() {
  Result<SafetensorsFile> file = SafetensorsFile();
  if (!options.weightsFile.empty())
    file = SafetensorsFile::open(options.weightsFile);
  if (!file.ok())
    return file.takeStatus();
  Result<Aliases> aliases = findAliases(program);
  if (!aliases.ok())
    return aliases.takeStatus();
  auto tensors = readStateDict(file->tensors(), *aliases, options.weightsFile);
  if (!tensors.ok())
    return tensors.takeStatus();
  if (Status status = match(*tensors); !status.ok())
    return status;
  if (Status status = replaceHeld(); !status.ok())
    return status;
  if (Status status = planPrepared(); !status.ok())
    return status;
  bool mustPrepare = std::count(isPlanned.begin(), isPlanned.end(), true) > 0;
  return mustPrepare ? prepare() : Status();
}

Status Refit::checkTensor(const format::ModelTensor &model,
                          const StoredTensor &tensor) const {
  if (model.dtype() != tensor.dtype)
    return makeError(Code::Usage, "weight '", tensor.name, "' is ",
                     traitsOf(tensor.dtype).name, ", expected ",
                     traitsOf(model.dtype()).name);
  if (!std::equal(tensor.shape.begin(), tensor.shape.end(),
                  model.shape()->begin(), model.shape()->end()))
    return makeError(Code::Usage, "weight '", tensor.name,
                     "' has another shape than in the model");
  const auto *structural = model.structural_digest();
  if (!structural || structural->size() == 0)
    return Status();
  format::Digest found = digestOf(tensor.bytes);
  if (std::memcmp(found.bytes, structural->data(), sizeof(found)) == 0)
    return Status();
  return makeError(Code::BadData, "weight '", tensor.name,
                   "' is a structural constant: it decided a shape, a branch "
                   "or a pattern, and cannot change without compiling again");
}

Status Refit::match(std::span<const StoredTensor> tensors) {
  std::unordered_map<std::string_view, size_t> indices;
  for (size_t i = 0; i < modelCount(); ++i) {
    const format::ModelTensor &model = *program.model_tensors()->Get(i);
    indices.emplace(model.name()->string_view(), i);
    if (model.const_index() < 0)
      continue;
    held[i] = target.constants[model.const_index()];
    if (program.weights()->Get(model.const_index())->bytes() == 0)
      held[i] = &kNothing;
  }
  for (const StoredTensor &tensor : tensors) {
    auto found = indices.find(tensor.name);
    if (found == indices.end())
      return makeError(Code::Usage, "'", options.weightsFile, "' has '",
                       tensor.name, "', which is no weight of the model");
    size_t index = found->second;
    if (Status status =
            checkTensor(*program.model_tensors()->Get(index), tensor);
        !status.ok())
      return status;
    given[index] = &tensor;
  }
  return Status();
}

Status Refit::refuseWithout(std::string_view tensor) const {
  if (options.weightsFile.empty())
    return makeError(Code::Usage, "package '", target.package.path(),
                     "' was compiled without weights: give a weights file");
  return makeError(Code::Usage, "the package has no weights and '",
                   options.weightsFile, "' lacks '", tensor, "'");
}

Status Refit::allocate(uint32_t index) {
  const format::ConstTensor &weight = *program.weights()->Get(index);
  Result<Memory> memory =
      Memory::allocate(std::max<size_t>(weight.bytes(), 1), options.allocator,
                       weight.name()->string_view());
  if (!memory.ok())
    return memory.takeStatus();
  fresh[index] = memory->data();
  target.constants[index] = memory->data();
  target.replaced.push_back(std::move(*memory));
  return Status();
}

/// Constants that are model tensors as they are. Tied names share one.
Status Refit::replaceHeld() {
  for (size_t i = 0; i < modelCount(); ++i) {
    const format::ModelTensor &model = *program.model_tensors()->Get(i);
    int32_t constant = model.const_index();
    if (!given[i])
      continue;
    held[i] = given[i]->bytes.data();
    if (constant < 0)
      continue;
    std::span<const std::byte> bytes = given[i]->bytes;
    if (fresh[constant] &&
        std::memcmp(fresh[constant], bytes.data(), bytes.size()) != 0)
      return makeError(Code::Usage, "weight '", given[i]->name,
                       "' differs from another name of the same tensor");
    if (!fresh[constant])
      if (Status status = allocate(constant); !status.ok())
        return status;
    std::memcpy(fresh[constant], bytes.data(), bytes.size());
  }
  for (size_t i = 0; i < modelCount(); ++i) {
    int32_t constant = program.model_tensors()->Get(i)->const_index();
    if (constant >= 0 && fresh[constant])
      held[i] = fresh[constant];
  }
  return Status();
}

/// A constant that is computed changes when a source of it is given; then all
/// its sources must be there.
Status Refit::planConstant(uint32_t index) {
  const format::ConstTensor &weight = *program.weights()->Get(index);
  std::string_view changed, missing;
  for (size_t i = 0; weight.sources() && i < weight.sources()->size(); ++i) {
    uint32_t source = weight.sources()->Get(i);
    std::string_view name =
        program.model_tensors()->Get(source)->name()->string_view();
    if (!held[source])
      missing = name;
    int32_t constant = program.model_tensors()->Get(source)->const_index();
    if (given[source] || (constant >= 0 && fresh[constant]))
      changed = name;
  }
  bool isAbsent = !target.constants[index] && weight.bytes() > 0;
  bool isNeeded = !changed.empty() || isAbsent;
  if (!isNeeded || fresh[index])
    return Status();
  if (!missing.empty() && changed.empty())
    return refuseWithout(missing);
  if (!missing.empty())
    return makeError(Code::Usage, "'", changed, "' and '", missing,
                     "' are computed into one constant: replace both or none");
  isPlanned[index] = true;
  return allocate(index);
}

Status Refit::planPrepared() {
  // What the package has not must come from the file.
  for (size_t i = 0; i < modelCount(); ++i) {
    const format::ModelTensor &model = *program.model_tensors()->Get(i);
    if (model.const_index() >= 0 && !held[i])
      return refuseWithout(model.name()->string_view());
  }
  for (uint32_t i = 0; i < constCount(); ++i)
    if (Status status = planConstant(i); !status.ok())
      return status;
  return Status();
}

/// Recomputes everything and keeps what changed.
Status Refit::prepare() {
  const format::Entry *entry = findEntry(program, format::EntryKind::prepare);
  if (!entry)
    return makeError(
        Code::BadData, "package '", target.package.path(),
        "' has computed constants but no entry that prepares them");
  std::unordered_set<std::string_view> computed;
  for (const format::TensorSpec *output : *entry->outputs())
    computed.insert(output->name()->string_view());
  std::vector<void *> outputs(fresh.begin(), fresh.end());
  for (size_t i = 0; i < outputs.size(); ++i) {
    std::string_view name = program.weights()->Get(i)->name()->string_view();
    if (computed.count(name))
      continue;
    if (isPlanned[i])
      return makeError(Code::BadData, "package '", target.package.path(),
                       "' has no value of '", name,
                       "', which its entry 'prepare' does not compute");
    outputs[i] = const_cast<std::byte *>(target.constants[i]); // only read
  }
  return runPrepare(program, target.kernels, held, outputs, options.threads,
                    options.allocator);
}

} // namespace

Status runtime::replaceWeights(const RefitTarget &target,
                               const ExecutableOptions &options) {
  return Refit(target, options).run();
}
