#include "runtime/data/ArraySource.h"

#include "runtime/data/Npy.h"
#include "runtime/data/Npz.h"
#include "runtime/data/Widen.h"
#include "runtime/package/Safetensors.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

using namespace tcc;
using namespace tcc::runtime;
namespace fs = std::filesystem;

SampleArray SampleArray::of(Tensor tensor) {
  return {tensor.dtype, std::move(tensor.shape), std::move(tensor.data)};
}

//===----------------------------------------------------------------------===//
// The source
//===----------------------------------------------------------------------===//

namespace {

class ArraySource final : public SampleSource {
public:
  ArraySource(std::vector<SampleArray> arrays,
              std::span<const BatchTensor> tensors)
      : arrays(std::move(arrays)) {
    for (const BatchTensor &tensor : tensors)
      dtypes.push_back(tensor.dtype);
  }

  int64_t sampleCount() const override { return arrays[0].shape[0]; }
  Status read(int64_t, int64_t number, SampleParts parts) const override {
    for (size_t i = 0; i < parts.size(); ++i)
      if (Status status = read(arrays[i], number, dtypes[i], parts[i]);
          !status.ok())
        return status;
    return Status();
  }

private:
  static Status read(const SampleArray &array, int64_t number, DType dtype,
                     std::span<std::byte> to);

  std::vector<SampleArray> arrays;
  std::vector<DType> dtypes; ///< of the tensors
};

} // namespace

/// Elements that are to be widened are read to the end of where they go, and
/// widened from the first on: none is written over before it is read.
Status ArraySource::read(const SampleArray &array, int64_t number, DType dtype,
                         std::span<std::byte> to) {
  size_t narrow = traitsOf(array.dtype).bytes, wide = traitsOf(dtype).bytes;
  size_t size = to.size() / wide * narrow;
  std::span<std::byte> own = to.last(size);
  uint64_t offset = array.offset + static_cast<uint64_t>(number) * size;
  if (const Memory *memory = std::get_if<Memory>(&array.bytes))
    std::copy_n(memory->data() + offset, size, own.data());
  else if (Status status =
               std::get<std::shared_ptr<const SampleFile>>(array.bytes)
                   ->read(offset, own);
           !status.ok())
    return status;
  if (array.dtype != dtype)
    widenInPlace(array.dtype, dtype, to);
  return Status();
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

static std::string describe(std::span<const int64_t> extents) {
  std::string text;
  for (int64_t extent : extents)
    text += concat("x", extent);
  return text;
}

/// Nothing if `array` has samples for `tensor`, else what is wrong.
static std::string findProblem(const SampleArray &array,
                               const BatchTensor &tensor) {
  std::span<const int64_t> expected = tensor.shape, found = array.shape;
  if (found.size() != expected.size() ||
      !std::ranges::equal(found.subspan(1), expected.subspan(1)))
    return concat("array '", tensor.arrayName(), "' is N",
                  found.empty() ? "" : describe(found.subspan(1)),
                  ", expected N", describe(expected.subspan(1)));
  if (array.dtype != tensor.dtype && !canWiden(array.dtype, tensor.dtype))
    return concat("array '", tensor.arrayName(), "' is ",
                  traitsOf(array.dtype).name, ", expected ",
                  traitsOf(tensor.dtype).name);
  return "";
}

static Result<SampleArray> makeOnes(int64_t count) {
  Result<Tensor> ones = Tensor::allocate(DType::f32, {count});
  if (!ones.ok())
    return ones.takeStatus();
  std::fill_n(reinterpret_cast<float *>(ones->data.data()), count, 1.0f);
  return SampleArray::of(std::move(*ones));
}

Result<std::unique_ptr<SampleSource>>
runtime::makeArraySource(const NamedArrays &named,
                         std::span<const BatchTensor> tensors) {
  std::vector<SampleArray> arrays;
  std::string problems;
  bool isMissing = false;
  auto add = [&](std::string_view problem) {
    if (!problem.empty())
      problems += concat(problems.empty() ? "" : "; ", problem);
  };
  for (const BatchTensor &tensor : tensors) {
    auto found = named.open(tensor.arrayName());
    if (!found.ok())
      return found.takeStatus();
    std::optional<SampleArray> array = std::move(*found);
    bool isOne =
        tensor.isWeight() && !arrays.empty() && !arrays[0].shape.empty();
    if (!array && !isOne) {
      isMissing = true;
      add(concat("there is no array '", tensor.arrayName(), "'"));
      continue;
    }
    if (!array) {
      auto ones = makeOnes(arrays[0].shape[0]);
      if (!ones.ok())
        return ones.takeStatus();
      array = std::move(*ones);
    }
    add(findProblem(*array, tensor));
    arrays.push_back(std::move(*array));
  }
  if (isMissing)
    add(named.names.empty() ? "it has none"
                            : concat("it has ", quoteNames(named.names)));
  if (problems.empty())
    for (size_t i = 1; i < arrays.size(); ++i)
      if (arrays[i].shape[0] != arrays[0].shape[0])
        add(concat("array '", tensors[i].name, "' has ", arrays[i].shape[0],
                   " samples, '", tensors[0].name, "' ", arrays[0].shape[0]));
  if (!problems.empty())
    return makeError(Code::Usage, "'", named.path, "': ", problems);
  return std::unique_ptr<SampleSource>(
      new ArraySource(std::move(arrays), tensors));
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

using FoundArray = Result<std::optional<SampleArray>>;

Result<NamedArrays> runtime::openNpz(const std::string &path, const Files &) {
  Result<NpzFile> opened = NpzFile::open(path);
  if (!opened.ok())
    return opened.takeStatus();
  auto file = std::make_shared<const NpzFile>(std::move(*opened));
  NamedArrays arrays = {path, {}, nullptr};
  for (const NpzFile::Member &member : file->members())
    arrays.names.push_back(member.name);
  arrays.open = [file](const std::string &name) -> FoundArray {
    const NpzFile::Member *member = file->find(name);
    if (!member)
      return std::optional<SampleArray>();
    Result<Tensor> tensor = file->read(*member);
    if (!tensor.ok())
      return tensor.takeStatus();
    return std::optional(SampleArray::of(std::move(*tensor)));
  };
  return arrays;
}

static FoundArray openNpyArray(const std::string &path, const Files &files) {
  auto file = files.open(path);
  if (!file.ok())
    return file.takeStatus();
  std::vector<std::byte> head(std::min<uint64_t>((*file)->size(), kNpyHead));
  if (Status status = (*file)->read(0, head); !status.ok())
    return status;
  auto layout = parseNpyLayout(head, (*file)->size(), path);
  if (!layout.ok())
    return layout.takeStatus();
  if (!layout->isFortran)
    return std::optional(SampleArray{layout->dtype, std::move(layout->shape),
                                     std::move(*file), layout->offset});
  Result<Tensor> tensor = readNpy(path);
  if (!tensor.ok())
    return tensor.takeStatus();
  return std::optional(SampleArray::of(std::move(*tensor)));
}

Result<NamedArrays> runtime::openNpyFolder(const std::string &folder,
                                           const Files &files) {
  NamedArrays arrays = {folder, {}, nullptr};
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error))
    if (it->path().extension() == ".npy")
      arrays.names.push_back(it->path().stem().string());
  if (error)
    return makeError(Code::Io, "cannot read '", folder, "': ", error.message());
  std::ranges::sort(arrays.names);
  arrays.open = [folder, files,
                 names = arrays.names](const std::string &name) -> FoundArray {
    if (std::ranges::find(names, name) == names.end())
      return std::optional<SampleArray>();
    return openNpyArray(concat(folder, "/", name, ".npy"), files);
  };
  return arrays;
}

Result<NamedArrays> runtime::openSafetensors(const std::string &path,
                                             const Files &files) {
  auto opened = SafetensorsFile::open(path);
  if (!opened.ok())
    return opened.takeStatus();
  auto header = std::make_shared<const SafetensorsFile>(std::move(*opened));
  auto file = files.open(path);
  if (!file.ok())
    return file.takeStatus();
  NamedArrays arrays = {path, {}, nullptr};
  for (const StoredTensor &tensor : header->tensors())
    arrays.names.push_back(tensor.name);
  arrays.open = [header, file = *file](const std::string &name) -> FoundArray {
    auto tensor =
        std::ranges::find(header->tensors(), name, &StoredTensor::name);
    if (tensor == header->tensors().end())
      return std::optional<SampleArray>();
    return std::optional(SampleArray{tensor->dtype, tensor->shape, file,
                                     header->offsetOf(*tensor)});
  };
  return arrays;
}
