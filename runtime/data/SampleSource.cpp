#include "runtime/data/SampleSource.h"

#include "runtime/data/ArraySource.h"
#include "runtime/data/RecordSamples.h"
#include "runtime/data/TokenSource.h"

#include <filesystem>

using namespace tcc;
using namespace tcc::runtime;

namespace {

struct Kind {
  std::string_view prefix;
  const char *place; ///< what comes after it; of a list, that ends in ...
  Result<std::unique_ptr<SampleSource>> (*open)(
      const std::string &path, std::span<const BatchTensor> tensors);
};

constexpr Kind kKinds[] = {
    {"npz:", "FILE", openNpzSource},
    {"npy:", "FOLDER", openNpySource},
    {"safetensors:", "FILE", openSafetensorsSource},
    {"tokens:", "FILE,...", openTokenSource},
    {"text:", "FILE,...", openTextSource},
    {"webdataset:", "FILE,...", openShardSource},
    {"images:", "FOLDER", openImageSource},
};

} // namespace

static const Kind *findKind(const std::string &spec) {
  for (const Kind &kind : kKinds)
    if (spec.starts_with(kind.prefix))
      return &kind;
  return nullptr;
}

Result<std::unique_ptr<SampleSource>>
runtime::openSource(const std::string &spec,
                    std::span<const BatchTensor> tensors) {
  if (const Kind *kind = findKind(spec))
    return kind->open(spec.substr(kind->prefix.size()), tensors);
  std::string known;
  for (const Kind &kind : kKinds)
    known += concat(known.empty() ? "" : ", ", kind.prefix, kind.place);
  return makeError(Code::Usage, "data '", spec,
                   "' are of no known kind, expected ", known);
}

std::string runtime::absoluteData(const std::string &spec) {
  const Kind *kind = findKind(spec);
  if (!kind)
    return spec;
  std::string rest = spec.substr(kind->prefix.size()), found;
  bool isList = std::string_view(kind->place).ends_with("...");
  for (const std::string &path :
       isList ? splitPaths(rest) : std::vector<std::string>{rest})
    found +=
        concat(found.empty() ? "" : ",",
               std::filesystem::absolute(path).lexically_normal().string());
  return concat(kind->prefix, found);
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
