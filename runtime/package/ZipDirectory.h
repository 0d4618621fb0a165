//===- ZipDirectory.h - Entries of zip files --------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_PACKAGE_ZIPDIRECTORY_H
#define TCC_RUNTIME_PACKAGE_ZIPDIRECTORY_H

#include "runtime/base/Status.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tcc::runtime {

/// The entries of a zip file that lies in memory (APPNOTE.TXT 4.3, with the
/// 64-bit extension), stored or deflated. Sizes come from the central
/// directory: local headers leave them out where the file was written as a
/// stream. Any thread may read.
class ZipDirectory {
public:
  struct Entry {
    std::string_view name;
    uint32_t checksum = 0;
    uint64_t size = 0;                 ///< once it is decompressed
    std::span<const std::byte> stored; ///< as it lies in the file
    bool isCompressed = false;
  };

  /// `bytes` must outlive all entries. Code::BadData where the file is
  /// malformed; the message does not name it.
  static Result<ZipDirectory> read(std::span<const std::byte> bytes);
  static bool isOne(std::span<const std::byte> bytes);

  /// All but folders, in the order of the directory.
  const std::vector<Entry> &entries() const { return all; }
  const Entry *find(std::string_view name) const;

private:
  Status readAll(std::span<const std::byte> file);
  Status readEntry(std::span<const std::byte> file, uint64_t &offset,
                   uint64_t end);

  std::vector<Entry> all;
  std::unordered_map<std::string_view, size_t> positions; ///< the first of each
};

} // namespace tcc::runtime

#endif // TCC_RUNTIME_PACKAGE_ZIPDIRECTORY_H
