#include "runtime/data/DataKind.h"
#include "runtime/data/RecordSamples.h"
#include "runtime/data/SplitMix64.h"
#include "runtime/executor/Context.h"
#include "runtime/package/Format.h"

#include <algorithm>
#include <filesystem>

using namespace tcc;
using namespace tcc::runtime;
namespace fs = std::filesystem;

static constexpr DataKind kKinds[] = {
    {"npz:", "FILE", openNpz},
    {"npy:", "FOLDER", openNpyFolder},
    {"safetensors:", "FILE", openSafetensors},
    {"tokens:", "FILE,...", openTokens},
    {"text:", "FILE,...", openText},
    {"webdataset:", "FILE,...", openShards},
    {"images:", "FOLDER", openImageFolder},
    {"csv:", "FILE,...", openCsv},
    {"jsonl:", "FILE,...", openJsonLines},
    {"mds:", "FOLDER", openMds},
};

uint64_t SampleSource::keyOf(int64_t number) const {
  return SplitMix64(uint64_t(number)).next();
}

BatchTensor BatchTensor::of(std::string name, DType dtype,
                            std::vector<std::vector<int64_t>> shapes) {
  auto sampleSize = [](const std::vector<int64_t> &shape) {
    return elementCount(std::span(shape).subspan(1));
  };
  BatchTensor tensor = {std::move(name), dtype,
                        *std::ranges::max_element(shapes, {}, sampleSize)};
  if (shapes.size() > 1)
    tensor.variants = std::move(shapes);
  return tensor;
}

size_t BatchTensor::sampleBytes() const {
  return bytesOf(dtype, std::span(shape).subspan(1)).value_or(0);
}

bool BatchTensor::isWeight() const { return name == format::kSampleWeight; }

Result<SampleRoom> SampleSource::needs(int64_t /*number*/) const {
  return Status(Code::Usage,
                "the package has variants of several sizes, and samples of "
                "these data are all of one: records have others");
}

static const DataKind *findKind(std::string_view spec) {
  for (const DataKind &kind : kKinds)
    if (spec.starts_with(kind.prefix))
      return &kind;
  return nullptr;
}

Result<NamedData> runtime::findData(const std::string &spec) {
  if (const DataKind *kind = findKind(spec))
    return NamedData{kind, spec.substr(kind->prefix.size())};
  std::string known;
  for (const DataKind &kind : kKinds)
    known += concat(known.empty() ? "" : ", ", kind.prefix, kind.place);
  return makeError(Code::Usage, "data '", spec,
                   "' are of no known kind, expected ", known, " or NAME.toml");
}

/// What only records have.
static Status checkTensors(const DataKind &kind,
                           std::span<const BatchTensor> tensors) {
  for (const BatchTensor &tensor : tensors) {
    bool hasOther = !tensor.transforms.empty() && kind.hasArrays();
    const char *what = hasOther                   ? "transforms"
                       : !tensor.classes.empty()  ? "classes"
                       : tensor.pad               ? "padding"
                       : tensor.fields.size() > 1 ? "several fields"
                                                  : nullptr;
    if (hasOther || (what && !kind.hasRecords()))
      return makeError(Code::Usage, "'", tensor.name, "' has ", what, ", and ",
                       kind.prefix, kind.place, " has none: records have them");
  }
  return Status();
}

namespace {

/// Makes samples of what was opened.
struct SampleMaker {
  const std::string &path;
  std::span<const BatchTensor> tensors;
  const SourceOptions &options;

  using Made = Result<std::unique_ptr<SampleSource>>;
  template <typename T> Made operator()(Opener<T> open) const {
    auto opened = open(path, options.files);
    return opened.ok() ? make(std::move(*opened)) : opened.takeStatus();
  }

private:
  Made make(NamedArrays arrays) const {
    return makeArraySource(arrays, tensors);
  }
  Made make(std::vector<TokenFile> files) const {
    return makeTokenSource(std::move(files), tensors);
  }
  Made make(std::unique_ptr<RecordSource> records) const {
    return makeRecordSamples(std::move(records), path, tensors, options);
  }
};

} // namespace

Result<std::unique_ptr<SampleSource>>
runtime::openSource(const std::string &spec,
                    std::span<const BatchTensor> tensors,
                    const SourceOptions &options) {
  auto data = findData(spec);
  if (!data.ok())
    return data.takeStatus();
  if (Status status = checkTensors(*data->kind, tensors); !status.ok())
    return status;
  return std::visit(SampleMaker{data->path, tensors, options},
                    data->kind->open);
}

std::string runtime::quoteNames(std::span<const std::string> names) {
  constexpr size_t kMost = 16;
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kMost); ++i)
    text += concat(i ? ", '" : "'", names[i], "'");
  return text + (names.size() > kMost ? ", ..." : "");
}

bool runtime::isPlanFile(std::string_view spec) {
  return !findKind(spec) && spec.ends_with(".toml");
}

std::string runtime::resolveData(const std::string &spec,
                                 const fs::path &folder) {
  auto resolve = [&](const std::string &path) {
    return (folder / path).lexically_normal().string();
  };
  if (isPlanFile(spec))
    return resolve(spec);
  const DataKind *kind = findKind(spec);
  if (!kind)
    return spec;
  std::string rest = spec.substr(kind->prefix.size()), found;
  for (const std::string &path :
       kind->isList() ? splitPaths(rest) : std::vector<std::string>{rest})
    found += concat(found.empty() ? "" : ",", resolve(path));
  return concat(kind->prefix, found);
}

std::string runtime::absoluteData(const std::string &spec) {
  std::error_code error;
  fs::path here = fs::current_path(error);
  return error ? spec : resolveData(spec, here);
}

std::vector<std::string> runtime::splitPaths(std::string_view list) {
  std::vector<std::string> paths;
  for (;;) {
    size_t end = list.find(',');
    paths.emplace_back(list.substr(0, end));
    if (end == list.npos)
      return paths;
    list.remove_prefix(end + 1);
  }
}
