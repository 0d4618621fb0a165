#include "runtime/data/SampleSource.h"

#include "runtime/data/ArraySource.h"
#include "runtime/data/RecordSamples.h"
#include "runtime/data/SplitMix64.h"
#include "runtime/data/TokenSource.h"

#include <filesystem>

using namespace tcc;
using namespace tcc::runtime;
namespace fs = std::filesystem;

namespace {

struct Kind {
  std::string_view prefix;
  const char *place; ///< what comes after it; of a list, that ends in ...
  bool hasTransforms, hasRecords;
  Result<std::unique_ptr<SampleSource>> (*open)(
      const std::string &path, std::span<const BatchTensor> tensors,
      const SourceOptions &options);
};

constexpr Kind kKinds[] = {
    {"npz:", "FILE", false, false, openNpzSource},
    {"npy:", "FOLDER", false, false, openNpySource},
    {"safetensors:", "FILE", false, false, openSafetensorsSource},
    {"tokens:", "FILE,...", true, false, openTokenSource},
    {"text:", "FILE,...", true, false, openTextSource},
    {"webdataset:", "FILE,...", true, true, openShardSource},
    {"images:", "FOLDER", true, true, openImageSource},
    {"csv:", "FILE,...", true, true, openCsvSource},
    {"jsonl:", "FILE,...", true, true, openJsonLinesSource},
    {"mds:", "FOLDER", true, true, openMdsSource},
};

} // namespace

uint64_t SampleSource::keyOf(int64_t number) const {
  return SplitMix64(uint64_t(number)).next();
}

static const Kind *findKind(std::string_view spec) {
  for (const Kind &kind : kKinds)
    if (spec.starts_with(kind.prefix))
      return &kind;
  return nullptr;
}

/// What only records have.
static Status checkTensors(const Kind &kind,
                           std::span<const BatchTensor> tensors) {
  for (const BatchTensor &tensor : tensors) {
    bool hasOther = !tensor.transforms.empty() && !kind.hasTransforms;
    const char *what = hasOther                   ? "transforms"
                       : !tensor.classes.empty()  ? "classes"
                       : tensor.fields.size() > 1 ? "several fields"
                                                  : nullptr;
    if (hasOther || (what && !kind.hasRecords))
      return makeError(Code::Usage, "'", tensor.name, "' has ", what, ", and ",
                       kind.prefix, kind.place, " has none: records have them");
  }
  return Status();
}

Result<std::unique_ptr<SampleSource>>
runtime::openSource(const std::string &spec,
                    std::span<const BatchTensor> tensors,
                    const SourceOptions &options) {
  if (const Kind *kind = findKind(spec)) {
    if (Status status = checkTensors(*kind, tensors); !status.ok())
      return status;
    return kind->open(spec.substr(kind->prefix.size()), tensors, options);
  }
  std::string known;
  for (const Kind &kind : kKinds)
    known += concat(known.empty() ? "" : ", ", kind.prefix, kind.place);
  return makeError(Code::Usage, "data '", spec,
                   "' are of no known kind, expected ", known, " or NAME.toml");
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
  const Kind *kind = findKind(spec);
  if (!kind)
    return spec;
  std::string rest = spec.substr(kind->prefix.size()), found;
  bool isList = std::string_view(kind->place).ends_with("...");
  for (const std::string &path :
       isList ? splitPaths(rest) : std::vector<std::string>{rest})
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
