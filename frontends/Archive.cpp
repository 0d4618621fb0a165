#include "frontends/Archive.h"

namespace tcc {

using llvm::ArrayRef;
using llvm::StringRef;

constexpr uint64_t kMaxText = uint64_t(256) << 20;
/// A small text may compress well, a larger one as code does.
constexpr uint64_t kMaxRatio = 200, kSmallText = 1 << 20;

static std::span<const std::byte> getBytes(const MappedFile &file) {
  return {reinterpret_cast<const std::byte *>(file.bytes.data()),
          file.bytes.size()};
}

bool Archive::isArchive(const MappedFile &file) {
  return runtime::ZipDirectory::isOne(getBytes(file));
}

/// All entries lie in one folder, whose name says nothing.
bool Archive::dropFolder(std::string &error) {
  error = "has no entries";
  if (entries.empty())
    return false;
  StringRef folder = entries.front().name.split('/').first;
  for (auto [i, entry] : llvm::enumerate(entries)) {
    auto [own, rest] = entry.name.split('/');
    llvm::SmallVector<StringRef> parts;
    rest.split(parts, '/');
    error = "entry '" + entry.name.str() + "' has a name that it must not have";
    if (own.empty() || own != folder || rest.empty() || rest.contains('\\') ||
        rest.contains('\0') || llvm::is_contained(parts, "..") ||
        llvm::is_contained(parts, ""))
      return false;
    error = "entry '" + entry.name.str() + "' is there twice";
    entry.name = rest;
    if (!positions.try_emplace(rest, i).second)
      return false;
  }
  return true;
}

std::optional<Archive> Archive::open(const MappedFile &file,
                                     std::string &error) {
  auto directory = runtime::ZipDirectory::read(getBytes(file));
  if (!directory.ok()) {
    error = directory.takeStatus().message();
    return std::nullopt;
  }
  Archive archive;
  archive.file = file;
  for (const runtime::ZipEntry &entry : directory->entries())
    archive.entries.push_back({entry.name, entry});
  if (!archive.dropFolder(error))
    return std::nullopt;
  return archive;
}

const Archive::Entry *Archive::find(StringRef name) const {
  auto found = positions.find(name);
  return found == positions.end() ? nullptr : &entries[found->second];
}

std::optional<ArrayRef<char>> Archive::getStored(const Entry &entry,
                                                 std::string &error) const {
  if (!entry.isChecked) {
    runtime::Status status = runtime::checkStored(entry.zip);
    if (!status.ok()) {
      error = status.message();
      return std::nullopt;
    }
    entry.isChecked = true;
  }
  return entry.getStored();
}

std::optional<std::string> Archive::read(const Entry &entry,
                                         std::string &error) const {
  uint64_t limit =
      std::max<uint64_t>(kSmallText, entry.zip.stored.size() * kMaxRatio);
  if (entry.zip.size > std::min(kMaxText, limit)) {
    error = "entry '" + entry.name.str() + "' is too large";
    return std::nullopt;
  }
  std::string text(entry.zip.size, '\0');
  runtime::Status status =
      runtime::extract(entry.zip, std::as_writable_bytes(std::span(text)));
  if (status.ok())
    return text;
  error = status.message();
  return std::nullopt;
}

} // namespace tcc
