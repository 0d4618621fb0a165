//===- Archive.h - Zip files of PyTorch -------------------------*- C++ -*-===//
#ifndef TCC_FRONTENDS_ARCHIVE_H
#define TCC_FRONTENDS_ARCHIVE_H

#include "frontends/MappedFile.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>
#include <vector>

namespace tcc {

/// The entries of a zip file by the names that they have below its one folder.
/// Sizes come from the central directory: local headers leave them out where
/// the file was written as a stream.
class Archive {
public:
  struct Entry {
    llvm::StringRef name;
    uint32_t checksum = 0;
    uint64_t size = 0;
    llvm::ArrayRef<char> stored; // as it lies in the file
    bool isCompressed = false;
    /// Stored bytes have their checksum; many tensors may lie in one entry.
    mutable bool isChecked = false;
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
  bool readDirectory(std::string &error);
  bool readEntry(uint64_t &offset, uint64_t end, std::string &error);
  bool locate(Entry &entry, uint64_t header, uint64_t compressed,
              std::string &error);
  bool dropFolder(std::string &error);

  MappedFile file;
  std::vector<Entry> entries;
  llvm::StringMap<size_t> positions;
};

} // namespace tcc

#endif // TCC_FRONTENDS_ARCHIVE_H
