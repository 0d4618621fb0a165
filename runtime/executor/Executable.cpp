#include "runtime/executor/Executable.h"

#include "runtime/base/Alignment.h"
#include "runtime/base/CpuFeatures.h"
#include "runtime/devices/cpu/CpuDevice.h"
#include "runtime/devices/cuda/OpenCuda.h"
#include "runtime/executor/Refit.h"

using namespace tcc;
using namespace tcc::runtime;

Result<std::shared_ptr<const Executable>>
Executable::load(std::shared_ptr<const Package> package,
                 const ExecutableOptions &options) {
  std::shared_ptr<Executable> executable(new Executable(std::move(package)));
  if (Status status = executable->chooseDevice(options); !status.ok())
    return status;
  if (Status status = executable->bindConstants(options); !status.ok())
    return status;
  bool isHost = executable->runsOn->isHost();
  executable->reportDevice(options.log);
  if (!isHost)
    if (Status status = executable->uploadConstants(options.allocator);
        !status.ok())
      return status;
  return std::shared_ptr<const Executable>(std::move(executable));
}

void Executable::reportDevice(const LogSink &log) const {
  if (runsOn->isHost())
    return log(LogLevel::Info,
               concat("running the code for ", chosen->cpu()->string_view()));
  std::string_view library = runsOn->library();
  log(LogLevel::Info, concat("running on ", runsOn->name(),
                             library.empty() ? "" : " with ", library));
  if (std::string_view note = runsOn->note(); !note.empty())
    log(LogLevel::Warning, std::string(note));
}

bool Executable::isForDevice() const {
  for (const format::Entry *entry : *program().entries())
    if (entry->space() == format::MemorySpace::device)
      return true;
  return false;
}

/// Opens the device of that name, or the one that the package is for.
Status Executable::chooseDevice(const ExecutableOptions &options) {
  std::string wanted = isForDevice() ? "cuda" : "cpu";
  if (!options.device.empty())
    wanted = options.device;
  std::optional<cuda::Choice> choice = cuda::parseChoice(wanted);
  if (!choice && wanted != "cpu")
    return makeError(Code::Device, "there is no device '", wanted,
                     "', only 'cpu', 'cuda:N' and 'emulated'");
  if (choice.has_value() != isForDevice())
    return makeError(Code::Device, "package '", source->path(),
                     "' was compiled for ", choice ? "the cpu" : "CUDA",
                     ", not for device '", wanted, "'");
  if (choice && !choice->isNumbered)
    choice->ordinal = options.localRank;
  Result<Tunings> tunings =
      options.tuneCache.empty() ? Tunings() : Tunings::read(options.tuneCache);
  if (!tunings.ok())
    return tunings.takeStatus();
  if (!choice) {
    if (Status status = mapCode(); !status.ok())
      return status;
    std::string cpu =
        concat(getCpuName(), " by code for ", chosen->cpu()->string_view());
    runsOn = std::make_unique<CpuDevice>(functions, &program(),
                                         std::move(*tunings), std::move(cpu));
    return Status();
  }
  auto device =
      cuda::openDevice(*choice, *source, std::move(*tunings), options.log);
  if (!device.ok())
    return device.takeStatus();
  runsOn = std::move(*device);
  return Status();
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
  if (Status status = chooseVariant(); !status.ok())
    return status;
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
  if (!runsOn->isHost()) // `prepare` runs here all the same
    if (Status status = mapCode(); !status.ok())
      return status;
  RefitTarget target = {*source, functions, constants, replaced};
  return replaceWeights(target, options);
}

/// Copies the constants that entries of the device read.
Status Executable::uploadConstants(const Allocator &host) {
  std::vector<bool> isRead(constants.size());
  for (const format::Entry *entry : *program().entries())
    for (const format::Buffer *buffer : *entry->buffers())
      if (entry->space() == format::MemorySpace::device &&
          buffer->storage() == format::StorageClass::constant &&
          buffer->base() < 0)
        isRead[buffer->index()] = true;
  std::vector<uint64_t> offsets(constants.size());
  uint64_t end = 0;
  for (size_t i = 0; i < constants.size(); ++i) {
    offsets[i] = end;
    if (!isRead[i])
      continue;
    uint64_t bytes = program().weights()->Get(i)->bytes();
    if (bytes > SIZE_MAX - end - kTensorAlignment)
      return Status(Code::OutOfMemory, "the weights are too large");
    end = alignTensor(end + bytes);
  }
  auto memory = Memory::allocate(end, runsOn->allocator(host), "the weights");
  if (!memory.ok())
    return memory.takeStatus();
  uploaded = std::move(*memory);
  for (size_t i = 0; i < constants.size(); ++i) {
    std::byte *place = isRead[i] ? uploaded.data() + offsets[i] : nullptr;
    if (isRead[i])
      if (Status status = runsOn->write(place, constants[i],
                                        program().weights()->Get(i)->bytes());
          !status.ok())
        return status;
    constants[i] = place;
  }
  replaced.clear();
  return Status();
}

const format::Entry *Executable::findEntry(format::EntryKind kind,
                                           uint16_t variant) const {
  return runtime::findEntry(program(), kind, variant);
}

uint64_t
Executable::constantBytes(std::span<const format::Entry *const> entries) const {
  const auto *weights = program().weights();
  std::vector<bool> isCounted(weights ? weights->size() : 0);
  uint64_t bytes = 0;
  for (const format::Entry *entry : entries)
    for (const format::Buffer *buffer : *entry->buffers()) {
      if (buffer->storage() != format::StorageClass::constant ||
          buffer->base() >= 0 || isCounted[buffer->index()])
        continue;
      isCounted[buffer->index()] = true;
      bytes += alignTensor(weights->Get(buffer->index())->bytes());
    }
  return bytes;
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
                                        format::EntryKind kind,
                                        uint16_t variant) {
  for (const format::Entry *entry : *program.entries())
    if (entry->kind() == kind && entry->variant() == variant)
      return entry;
  return nullptr;
}
