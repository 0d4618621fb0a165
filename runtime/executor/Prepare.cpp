#include "runtime/executor/Prepare.h"

#include "runtime/base/Alignment.h"
#include "runtime/devices/cpu/CpuDevice.h"
#include "runtime/executor/Executable.h"
#include "runtime/executor/Walker.h"
#include "runtime/package/DType.h"
#include "runtime/package/Format.h"
#include "runtime/package/Verify.h"

#include <optional>
#include <sys/mman.h>
#include <vector>

using namespace tcc;
using namespace tcc::runtime;
using format::StorageClass;

namespace {

/// Pages that read as zeros and cost memory only once written.
class ZeroPages {
public:
  explicit ZeroPages(size_t bytes) : bytes(bytes) {
    if (bytes)
      address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  }
  ~ZeroPages() {
    if (ok() && bytes)
      munmap(address, bytes);
  }
  ZeroPages(const ZeroPages &) = delete;
  ZeroPages &operator=(const ZeroPages &) = delete;

  bool ok() const { return address != MAP_FAILED; }
  void *data() const { return address; }

private:
  void *address = nullptr;
  size_t bytes;
};

/// The largest tensor that stands for an absent one that is only read.
size_t largestTensor(const format::Program &program) {
  size_t largest = 0;
  if (program.weights())
    for (const format::ConstTensor *weight : *program.weights())
      largest = std::max<size_t>(largest, weight->bytes());
  if (!program.model_tensors())
    return largest;
  for (const format::ModelTensor *tensor : *program.model_tensors()) {
    std::span shape(tensor->shape()->data(), tensor->shape()->size());
    largest = std::max<size_t>(largest, *bytesOf(tensor->dtype(), shape));
  }
  return largest;
}

template <typename Table>
int64_t indexOf(const flatbuffers::Vector<flatbuffers::Offset<Table>> *tables,
                std::string_view name) {
  for (size_t i = 0; tables && i < tables->size(); ++i)
    if (tables->Get(i)->name()->string_view() == name)
      return i;
  return -1;
}

/// Binds the buffers of one walk: to the tensors that are there, to zeros for
/// absent ones that are only read, and to places of their own for constants
/// that are computed and dropped, as later kernels read them back.
class Binder {
public:
  Binder(const format::Program &program, const format::Entry &entry,
         std::span<const void *const> modelTensors,
         std::span<void *const> constTensors)
      : program(program), entry(entry), modelTensors(modelTensors),
        constTensors(constTensors.begin(), constTensors.end()) {}

  Status bindAll(Walker &walker);

private:
  Status findOutputs();
  Status placeAbsent();
  void *model(size_t index) const {
    return modelTensors[index] ? const_cast<void *>(modelTensors[index])
                               : zeros->data();
  }

  const format::Program &program;
  const format::Entry &entry;
  std::span<const void *const> modelTensors;
  std::vector<void *> constTensors;
  std::vector<size_t> outputs; ///< the constant that each output is
  std::optional<ZeroPages> zeros, dropped;
};

Status Binder::findOutputs() {
  for (const format::TensorSpec *output : *entry.outputs()) {
    std::string_view name = output->name()->string_view();
    int64_t index = indexOf(program.weights(), name);
    if (index < 0)
      return makeError(Code::BadData, "prepare writes '", name,
                       "', which is no weight");
    outputs.push_back(index);
  }
  return Status();
}

Status Binder::placeAbsent() {
  constexpr size_t kAbsent = SIZE_MAX;
  std::vector<size_t> offsets(constTensors.size(), kAbsent);
  size_t end = 0;
  for (size_t index : outputs) {
    if (constTensors[index] || offsets[index] != kAbsent)
      continue;
    offsets[index] = end;
    size_t bytes = program.weights()->Get(index)->bytes();
    if (__builtin_add_overflow(end, bytes, &end) ||
        __builtin_add_overflow(end, kTensorAlignment - 1, &end))
      return Status(Code::OutOfMemory,
                    "the constants of prepare are too large");
    end -= end % kTensorAlignment;
  }
  size_t largest = largestTensor(program);
  if (!zeros.emplace(largest).ok() || !dropped.emplace(end).ok())
    return makeError(Code::OutOfMemory, "cannot map ", largest, " and ", end,
                     " bytes for prepare");
  for (size_t i = 0; i < constTensors.size(); ++i)
    if (offsets[i] != kAbsent)
      constTensors[i] = static_cast<std::byte *>(dropped->data()) + offsets[i];
    else if (!constTensors[i])
      constTensors[i] = zeros->data();
  return Status();
}

Status Binder::bindAll(Walker &walker) {
  if (Status status = findOutputs(); !status.ok())
    return status;
  if (Status status = placeAbsent(); !status.ok())
    return status;
  for (size_t i = 0; i < modelTensors.size(); ++i)
    walker.bind(StorageClass::model, i, model(i));
  for (size_t i = 0; i < constTensors.size(); ++i)
    walker.bind(StorageClass::constant, i, constTensors[i]);
  for (size_t i = 0; i < outputs.size(); ++i)
    walker.bind(StorageClass::output, i, constTensors[outputs[i]]);
  for (size_t i = 0; i < entry.inputs()->size(); ++i) {
    std::string_view name = entry.inputs()->Get(i)->name()->string_view();
    int64_t index = indexOf(program.model_tensors(), name);
    if (index < 0)
      return makeError(Code::BadData, "prepare reads '", name,
                       "', which is no model tensor");
    walker.bind(StorageClass::input, i, model(index));
  }
  return Status();
}

} // namespace

Status runtime::runPrepare(const format::Program &program,
                           std::span<const format::KernelFunction> kernels,
                           std::span<const void *const> modelTensors,
                           std::span<void *const> constTensors, int threads,
                           const Allocator &allocator) {
  const format::Entry *entry = findEntry(program, format::EntryKind::prepare);
  if (!entry)
    return Status();
  size_t models = program.model_tensors() ? program.model_tensors()->size() : 0;
  size_t constants = program.weights() ? program.weights()->size() : 0;
  if (modelTensors.size() != models || constTensors.size() != constants)
    return makeError(Code::Internal, "prepare needs ", models,
                     " model tensors and ", constants, " const tensors");
  ThreadPool pool(threads);
  CpuDevice device(kernels);
  auto workspace =
      Workspace::create(device, std::span(&entry, 1), {&pool, allocator});
  if (!workspace.ok())
    return workspace.takeStatus();
  Walker walker(program, *entry, std::move(*workspace));
  Binder binder(program, *entry, modelTensors, constTensors);
  if (Status status = binder.bindAll(walker); !status.ok())
    return status;
  return walker.walk();
}

Status runtime::runPrepare(std::span<const std::byte> programBytes,
                           size_t variant, std::span<const std::byte> image,
                           std::span<const void *const> modelTensors,
                           std::span<void *const> constTensors, int threads) {
  if (Status status = verifyProgram(programBytes, {}); !status.ok())
    return status;
  const format::Program &program = *format::GetProgram(programBytes.data());
  if (variant >= program.variants()->size())
    return makeError(Code::Internal, "there is no variant ", variant);
  Result<CodeImage> mapped = CodeImage::map(image);
  if (!mapped.ok())
    return mapped.takeStatus();
  auto kernels = kernelsOf(program, *program.variants()->Get(variant), *mapped);
  if (!kernels.ok())
    return kernels.takeStatus();
  return runPrepare(program, *kernels, modelTensors, constTensors, threads,
                    systemAllocator());
}
