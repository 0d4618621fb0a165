#include "runtime/package/TensorFiles.h"

#include "runtime/base/ParseJson.h"

#include <algorithm>
#include <filesystem>
#include <map>

using namespace tcc;
using namespace tcc::runtime;
namespace fs = std::filesystem;

namespace {

/// The tensors of each file.
using WeightMap = std::map<std::string, std::vector<std::string>>;

} // namespace

static Result<WeightMap> readMap(const std::string &path) {
  auto file = MappedFile::open(path);
  if (!file.ok())
    return file.takeStatus();
  std::string_view text(reinterpret_cast<const char *>(file->bytes().data()),
                        file->bytes().size());
  auto index = parseObject(text);
  nlohmann::json map =
      index ? index->value("weight_map", nlohmann::json()) : nlohmann::json();
  if (!map.is_object())
    return makeError(Code::BadData, "'", path,
                     "' is no index of tensors: it has no 'weight_map'");
  WeightMap files;
  for (auto &[name, value] : map.items()) {
    fs::path own = value.is_string() ? value.get<std::string>() : "";
    if (own.empty() || own.has_parent_path())
      return makeError(Code::BadData, "'", path, "': the file of '", name,
                       "' is no name of one in its folder");
    files[own.string()].push_back(name);
  }
  return files;
}

Status TensorFiles::readIndex(const std::string &path) {
  auto map = readMap(path);
  if (!map.ok())
    return map.takeStatus();
  for (auto &[name, tensors] : *map) {
    std::string own = (fs::path(path).parent_path() / name).string();
    auto file = SafetensorsFile::open(own);
    if (!file.ok())
      return file.takeStatus();
    for (const std::string &tensor : tensors) {
      auto found =
          std::ranges::find(file->tensors(), tensor, &StoredTensor::name);
      if (found == file->tensors().end())
        return makeError(Code::BadData, "'", own, "' has no tensor '", tensor,
                         "', which '", path, "' lists");
      entries.push_back(*found);
    }
    files.push_back(std::move(*file));
  }
  std::ranges::sort(entries, {}, &StoredTensor::name);
  return Status();
}

Result<TensorFiles> TensorFiles::open(const std::string &path) {
  TensorFiles opened;
  if (path.ends_with(".json")) {
    if (Status status = opened.readIndex(path); !status.ok())
      return status;
    return opened;
  }
  auto file = SafetensorsFile::open(path);
  if (!file.ok())
    return file.takeStatus();
  opened.entries = file->tensors();
  opened.files.push_back(std::move(*file));
  return opened;
}
