//===- Archive.h - Zip files of PyTorch -------------------------*- C++ -*-===//
#ifndef TCC_FRONTENDS_ARCHIVE_H
#define TCC_FRONTENDS_ARCHIVE_H

#include "frontends/MappedFile.h"
#include "runtime/data/ZipEntries.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>
#include <vector>

namespace tcc {

/// The entries of a zip file by the names that they have below its one folder.
class Archive {
public:
  struct Entry {
    llvm::StringRef name;
    runtime::ZipEntry zip;
    /// Stored bytes have their checksum; many tensors may lie in one entry.
    mutable bool isChecked = false;

    llvm::ArrayRef<char> getStored() const {
      return {reinterpret_cast<const char *>(zip.stored.data()),
              zip.stored.size()};
    }
  };

  /// True if the file begins as zip files do.
  static bool isArchive(const MappedFile &file);
  /// Reads the directory; nullopt and `error` if it is malformed.
  static std::optional<Archive> open(const MappedFile &file,
                                     std::string &error);

  const Entry *find(llvm::StringRef name) const;
  llvm::ArrayRef<Entry> getEntries() const { return entries; }

  /// The bytes of an entry that is not compressed, in the mapped file.
  std::optional<llvm::ArrayRef<char>> getStored(const Entry &entry,
                                                std::string &error) const;
  /// The text of an entry, of at most 256 MiB.
  std::optional<std::string> read(const Entry &entry, std::string &error) const;
  std::shared_ptr<const void> getOwner() const { return file.owner; }
  int64_t getFileSize() const { return int64_t(file.bytes.size()); }

private:
  bool dropFolder(std::string &error);

  MappedFile file;
  std::vector<Entry> entries;
  llvm::StringMap<size_t> positions;
};

} // namespace tcc

#endif // TCC_FRONTENDS_ARCHIVE_H
