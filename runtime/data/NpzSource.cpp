#include "runtime/data/NpzSource.h"

#include "runtime/data/Npz.h"
#include "runtime/data/Widen.h"
#include "runtime/package/Format.h"

#include <algorithm>

using namespace tcc;
using namespace tcc::runtime;

namespace {

/// Arrays in memory, samples first.
class NpzSource final : public SampleSource {
public:
  explicit NpzSource(std::vector<Tensor> arrays) : arrays(std::move(arrays)) {}

  int64_t sampleCount() const override { return arrays[0].shape[0]; }
  Status read(int64_t, int64_t number, SampleParts parts) const override {
    for (size_t i = 0; i < parts.size(); ++i)
      std::copy_n(arrays[i].data.data() + number * parts[i].size(),
                  parts[i].size(), parts[i].data());
    return Status();
  }

private:
  std::vector<Tensor> arrays;
};

} // namespace

static std::string describe(std::span<const int64_t> extents) {
  std::string text;
  for (int64_t extent : extents)
    text += concat("x", extent);
  return text;
}

/// Nothing if `array` has samples for `tensor`, else what is wrong.
static std::string findProblem(const Tensor &array, const BatchTensor &tensor) {
  std::span<const int64_t> expected = tensor.shape, found = array.shape;
  if (found.size() != expected.size() ||
      !std::ranges::equal(found.subspan(1), expected.subspan(1)))
    return concat("array '", tensor.name, "' is N",
                  found.empty() ? "" : describe(found.subspan(1)),
                  ", expected N", describe(expected.subspan(1)));
  if (array.dtype != tensor.dtype)
    return concat("array '", tensor.name, "' is ", traitsOf(array.dtype).name,
                  ", expected ", traitsOf(tensor.dtype).name);
  return "";
}

static Result<Tensor> makeOnes(int64_t count) {
  Result<Tensor> ones = Tensor::allocate(DType::f32, {count});
  if (ones.ok())
    std::fill_n(reinterpret_cast<float *>(ones->data.data()), count, 1.0f);
  return ones;
}

/// The names of an archive's arrays as part of a sentence, the first of many.
static std::string listNames(const std::vector<NpzFile::Member> &members) {
  constexpr size_t kMost = 16;
  std::string text = members.empty() ? "it has none" : "it has ";
  for (size_t i = 0; i < std::min(members.size(), kMost); ++i)
    text += concat(i ? ", '" : "'", members[i].name, "'");
  return text + (members.size() > kMost ? ", ..." : "");
}

Result<std::unique_ptr<SampleSource>>
runtime::openNpzSource(const std::string &path,
                       std::span<const BatchTensor> tensors) {
  Result<NpzFile> file = NpzFile::open(path);
  if (!file.ok())
    return file.takeStatus();
  std::vector<Tensor> arrays;
  std::string problems, missing;
  auto add = [&](std::string_view problem) {
    if (!problem.empty())
      problems += concat(problems.empty() ? "" : "; ", problem);
  };
  for (const BatchTensor &tensor : tensors) {
    const NpzFile::Member *member = file->find(tensor.name);
    bool isOne = tensor.name == format::kSampleWeight && !arrays.empty() &&
                 !arrays[0].shape.empty();
    if (!member && !isOne) {
      missing = listNames(file->members());
      add(concat("there is no array '", tensor.name, "'"));
      continue;
    }
    Result<Tensor> array =
        member ? file->read(*member) : makeOnes(arrays[0].shape[0]);
    if (array.ok())
      array = widen(std::move(*array), tensor.dtype);
    if (!array.ok())
      return array.takeStatus();
    add(findProblem(*array, tensor));
    arrays.push_back(std::move(*array));
  }
  add(missing);
  if (problems.empty())
    for (size_t i = 1; i < arrays.size(); ++i)
      if (arrays[i].shape[0] != arrays[0].shape[0])
        add(concat("array '", tensors[i].name, "' has ", arrays[i].shape[0],
                   " samples, '", tensors[0].name, "' ", arrays[0].shape[0]));
  if (!problems.empty())
    return makeError(Code::Usage, "'", path, "': ", problems);
  return std::unique_ptr<SampleSource>(new NpzSource(std::move(arrays)));
}
