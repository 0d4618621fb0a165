#include "runtime/executor/Executable.h"

#include "runtime/base/CpuFeatures.h"
#include "runtime/devices/cpu/CpuDevice.h"
#include "runtime/executor/Refit.h"

using namespace tcc;
using namespace tcc::runtime;

Result<std::shared_ptr<const Executable>>
Executable::load(std::shared_ptr<const Package> package,
                 const ExecutableOptions &options) {
  std::shared_ptr<Executable> executable(new Executable(std::move(package)));
  if (Status status = executable->chooseVariant(); !status.ok())
    return status;
  if (Status status = executable->mapCode(); !status.ok())
    return status;
  if (Status status = executable->bindConstants(options); !status.ok())
    return status;
  options.log(LogLevel::Info, concat("running the code for ",
                                     executable->chosen->cpu()->string_view()));
  return std::shared_ptr<const Executable>(std::move(executable));
}

/// The features that the code needs and this CPU lacks, in quotes.
static std::string missingFeatures(const format::Variant &variant) {
  std::string missing;
  for (size_t i = 0; variant.features() && i < variant.features()->size(); ++i)
    if (std::string_view feature = variant.features()->Get(i)->string_view();
        !hasCpuFeature(feature))
      missing += concat(missing.empty() ? "'" : ", '", feature, "'");
  return missing;
}

/// Takes the variant that uses the most features of this CPU.
Status Executable::chooseVariant() {
  std::string lacking;
  size_t most = 0;
  for (const format::Variant *variant : *program().variants()) {
    if (variant->target()->string_view() != "cpu")
      continue;
    std::string missing = missingFeatures(*variant);
    size_t count = variant->features() ? variant->features()->size() : 0;
    if (!missing.empty()) {
      lacking += concat(lacking.empty() ? "" : ", ", missing, " for ",
                        variant->cpu()->string_view());
      continue;
    }
    if (!chosen || count > most) {
      chosen = variant;
      most = count;
    }
  }
  if (chosen)
    return Status();
  if (lacking.empty())
    return makeError(Code::Device, "package '", source->path(),
                     "' has no code for a cpu");
  return makeError(Code::Device, "this CPU, an x86-64-v",
                   getArchitectureLevel(), ", lacks ", lacking,
                   ", needed by package '", source->path(), "'");
}

Status Executable::mapCode() {
  Result<Memory> bytes = source->readSection(chosen->image());
  if (!bytes.ok())
    return bytes.takeStatus();
  Result<CodeImage> mapped = CodeImage::map(bytes->span());
  if (!mapped.ok())
    return mapped.takeStatus();
  image = std::move(*mapped);
  Result<std::vector<format::KernelFunction>> found =
      kernelsOf(program(), *chosen, *image);
  if (!found.ok())
    return found.takeStatus();
  functions = std::move(*found);
  runsOn = std::make_unique<CpuDevice>(functions);
  return Status();
}

Status Executable::bindConstants(const ExecutableOptions &options) {
  const auto *weights = program().weights();
  size_t count = weights ? weights->size() : 0;
  constants.resize(count);
  bool isComplete = true;
  for (size_t i = 0; i < count; ++i) {
    bool isHere = source->hasWeight(*weights->Get(i));
    isComplete &= isHere;
    if (isHere)
      constants[i] = source->weight(*weights->Get(i)).data();
  }
  if (isComplete && options.weightsFile.empty())
    return Status();
  RefitTarget target = {*source, functions, constants, replaced};
  return replaceWeights(target, options);
}

const format::Entry *Executable::findEntry(std::string_view name) const {
  return runtime::findEntry(program(), name);
}

Result<std::vector<format::KernelFunction>>
runtime::kernelsOf(const format::Program &program,
                   const format::Variant &variant, const CodeImage &image) {
  std::vector<format::KernelFunction> functions;
  const auto &offsets = *variant.kernel_offsets();
  for (size_t i = 0; i < offsets.size(); ++i) {
    format::KernelFunction function = image.kernelAt(offsets.Get(i));
    if (!function && offsets.Get(i) != format::kNoKernel)
      return makeError(Code::BadData, "kernel '",
                       program.kernels()->Get(i)->symbol()->string_view(),
                       "' lies outside the code");
    functions.push_back(function);
  }
  return functions;
}

const format::Entry *runtime::findEntry(const format::Program &program,
                                        std::string_view name) {
  for (const format::Entry *entry : *program.entries())
    if (entry->name()->string_view() == name)
      return entry;
  return nullptr;
}
