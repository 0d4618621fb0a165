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

/// Whether torch.save wrote a file; its first bytes tell.
static Result<bool> isOfPyTorch(const std::string &path) {
  constexpr std::byte kPickle[] = {std::byte(0x80), std::byte(2)};
  auto file = MappedFile::open(path);
  if (!file.ok())
    return file.takeStatus();
  if (file->bytes().size() > sizeof(kPickle) &&
      std::ranges::equal(file->bytes().first(sizeof(kPickle)), kPickle))
    return makeError(Code::Unsupported, "'", path,
                     "' is of PyTorch before 1.6: write it again, with "
                     "torch.save of a newer one");
  return PyTorchFile::isOne(file->bytes());
}

Result<std::span<const StoredTensor>>
TensorFiles::add(const std::string &path) {
  auto keep = [&](auto opened) -> Result<std::span<const StoredTensor>> {
    if (!opened.ok())
      return opened.takeStatus();
    files.emplace_back(std::move(*opened));
    return std::visit(
        [](const auto &file) -> std::span<const StoredTensor> {
          return file.tensors();
        },
        files.back());
  };
  auto isPyTorch = isOfPyTorch(path);
  if (!isPyTorch.ok())
    return isPyTorch.takeStatus();
  return *isPyTorch ? keep(PyTorchFile::open(path))
                    : keep(SafetensorsFile::open(path));
}

Status TensorFiles::readIndex(const std::string &path) {
  auto map = readMap(path);
  if (!map.ok())
    return map.takeStatus();
  for (auto &[name, tensors] : *map) {
    std::string own = (fs::path(path).parent_path() / name).string();
    auto file = add(own);
    if (!file.ok())
      return file.takeStatus();
    for (const std::string &tensor : tensors) {
      auto found = std::ranges::find(*file, tensor, &StoredTensor::name);
      if (found == file->end())
        return makeError(Code::BadData, "'", own, "' has no tensor '", tensor,
                         "', which '", path, "' lists");
      entries.push_back(*found);
    }
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
  auto file = opened.add(path);
  if (!file.ok())
    return file.takeStatus();
  opened.entries.assign(file->begin(), file->end());
  return opened;
}
