//===- SampleFile.h - A file that samples are read from ---------*- C++ -*-===//
#ifndef TCC_RUNTIME_DATA_SAMPLEFILE_H
#define TCC_RUNTIME_DATA_SAMPLEFILE_H

#include "runtime/data/BlockCache.h"

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace tcc::runtime {

/// An open file, read at offsets by several threads at once. It is not mapped:
/// where it shrinks, or its disk fails, a read says so.
class SampleFile {
public:
  /// Fails (Code::Io) where there is no regular file that can be read.
  /// With a cache reads go through it.
  static Result<std::shared_ptr<const SampleFile>>
  open(const std::string &path, std::shared_ptr<BlockCache> cache = nullptr);
  /// Takes an open file of so many bytes, and closes it. `path` is for errors.
  static std::shared_ptr<const SampleFile>
  adopt(std::string path, int file, uint64_t bytes, int64_t modified = 0) {
    return std::shared_ptr<const SampleFile>(
        new SampleFile(std::move(path), file, bytes, modified));
  }
  ~SampleFile();
  SampleFile(const SampleFile &) = delete;
  SampleFile &operator=(const SampleFile &) = delete;

  const std::string &path() const { return name; }
  /// When it was opened.
  uint64_t size() const { return bytes; }
  /// When it was written to, nanoseconds since 1970; 0 of one that was adopted.
  int64_t modified() const { return time; }
  /// Code::BadData where the file ends before; Code::Io where it cannot be
  /// read.
  Status read(uint64_t offset, std::span<std::byte> to) const;

private:
  SampleFile(std::string path, int file, uint64_t bytes, int64_t modified)
      : name(std::move(path)), file(file), bytes(bytes), time(modified) {}

  Status readItself(uint64_t offset, std::span<std::byte> to) const;

  std::string name;
  int file;
  uint64_t bytes;
  int64_t time;
  std::shared_ptr<BlockCache> cache; ///< null: none
  std::unique_ptr<BlockCache::File> cached;
};

/// How a source opens its files.
struct Files {
  std::shared_ptr<BlockCache> cache; ///< null: none

  Result<std::shared_ptr<const SampleFile>>
  open(const std::string &path) const {
    return SampleFile::open(path, cache);
  }
};

} // namespace tcc::runtime

#endif // TCC_RUNTIME_DATA_SAMPLEFILE_H
