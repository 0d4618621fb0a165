#include "runtime/data/SampleFile.h"
#include "runtime/data/records/RecordSource.h"

#include <algorithm>
#include <array>
#include <filesystem>

using namespace tcc;
using namespace tcc::runtime;
namespace fs = std::filesystem;

namespace {

enum Field : size_t { kImage, kLabel };

class ImageFolder final : public RecordSource {
public:
  struct Entry {
    std::string path;
    size_t label;
  };

  ImageFolder(std::string folder, std::vector<Entry> entries, Files files)
      : folder(std::move(folder)), entries(std::move(entries)),
        files(std::move(files)) {}

  int64_t recordCount() const override { return int64_t(entries.size()); }
  uint64_t keyOf(int64_t record) const override;
  std::span<const std::string> fieldNames() const override { return names; }
  Status read(int64_t record, std::span<const FieldRead> fields) const override;
  std::string describe(int64_t record) const override {
    return concat("'", entries[size_t(record)].path, "'");
  }

private:
  const std::string folder;
  const std::vector<Entry> entries;
  const Files files;
  const std::array<std::string, 2> names = {"image", "label"};
};

} // namespace

/// By its path in the folder.
uint64_t ImageFolder::keyOf(int64_t record) const {
  std::string_view path = entries[size_t(record)].path;
  return keyOfText(path.substr(folder.size()));
}

static Status readFile(const Files &files, const std::string &path,
                       std::vector<std::byte> &bytes) {
  auto file = files.open(path);
  if (!file.ok())
    return file.takeStatus();
  bytes.resize((*file)->size());
  return (*file)->read(0, bytes);
}

Status ImageFolder::read(int64_t record,
                         std::span<const FieldRead> fields) const {
  const Entry &entry = entries[size_t(record)];
  for (const FieldRead &read : fields) {
    if (read.field == kLabel) {
      std::string digits = std::to_string(entry.label);
      auto span = std::as_bytes(std::span(digits));
      read.bytes->assign(span.begin(), span.end());
    } else if (Status status = readFile(files, entry.path, *read.bytes);
               !status.ok()) {
      return status;
    }
  }
  return Status();
}

static bool isImage(const fs::path &path) {
  std::string ending = path.extension().string();
  for (char &c : ending)
    if (c >= 'A' && c <= 'Z')
      c = static_cast<char>(c - 'A' + 'a');
  constexpr std::string_view kEndings[] = {".jpg", ".jpeg", ".png", ".webp"};
  return std::ranges::find(kEndings, ending) != std::end(kEndings);
}

/// The folders, or else the images, of a folder, by name.
template <typename Iterator>
static Result<std::vector<std::string>> list(const std::string &folder,
                                             bool wantsFolders) {
  std::vector<std::string> found;
  std::error_code error;
  for (Iterator
           at(folder, fs::directory_options::follow_directory_symlink, error),
       end;
       !error && at != end; at.increment(error)) {
    bool isFolder = at->is_directory(error);
    if (!error && isFolder == wantsFolders && (isFolder || isImage(at->path())))
      found.push_back(at->path().string());
  }
  if (error)
    return makeError(Code::Io, "cannot read '", folder, "': ", error.message());
  std::ranges::sort(found);
  return found;
}

Result<std::unique_ptr<RecordSource>>
runtime::openImageFolder(const std::string &folder, const Files &files) {
  auto classes = list<fs::directory_iterator>(folder, /*wantsFolders=*/true);
  if (!classes.ok())
    return classes.takeStatus();
  std::vector<ImageFolder::Entry> entries;
  for (size_t label = 0; label < classes->size(); ++label) {
    auto paths = list<fs::recursive_directory_iterator>((*classes)[label],
                                                        /*wantsFolders=*/false);
    if (!paths.ok())
      return paths.takeStatus();
    for (std::string &path : *paths)
      entries.push_back({std::move(path), label});
  }
  if (entries.empty())
    return makeError(Code::BadData, "'", folder,
                     "': there is no folder of a class with images in it");
  return std::unique_ptr<RecordSource>(
      new ImageFolder(folder, std::move(entries), files));
}
