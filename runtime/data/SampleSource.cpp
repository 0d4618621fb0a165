#include "runtime/data/SampleSource.h"

#include "runtime/data/NpzSource.h"

#include <filesystem>

using namespace tcc;
using namespace tcc::runtime;

static constexpr std::string_view kNpz = "npz:";

Result<std::unique_ptr<SampleSource>>
runtime::openSource(const std::string &spec,
                    std::span<const BatchTensor> tensors) {
  if (spec.starts_with(kNpz))
    return openNpzSource(spec.substr(kNpz.size()), tensors);
  return makeError(Code::Usage, "data '", spec,
                   "' are of no known kind, expected npz:FILE");
}

std::string runtime::absoluteData(const std::string &spec) {
  if (!spec.starts_with(kNpz))
    return spec;
  std::string path = spec.substr(kNpz.size());
  return concat(kNpz,
                std::filesystem::absolute(path).lexically_normal().string());
}
