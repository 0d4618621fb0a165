//===- RecordSource.h - Samples of named fields -----------------*- C++ -*-===//
#ifndef TCC_RUNTIME_DATA_RECORDS_RECORDSOURCE_H
#define TCC_RUNTIME_DATA_RECORDS_RECORDSOURCE_H

#include "runtime/base/Status.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tcc::runtime {

/// Records by number, each of fields of bytes that have names, as a file has an
/// ending. Callable from any thread.
class RecordSource {
public:
  virtual ~RecordSource() = default;
  virtual int64_t recordCount() const = 0;
  /// See SampleSource.
  virtual uint64_t keyOf(int64_t record) const = 0;
  /// Of all records; of one some may be missing.
  virtual std::span<const std::string> fieldNames() const = 0;
  /// The first of these fields that a record has, numbers of the names; nothing
  /// if it has none of them.
  virtual std::optional<size_t>
  findField(int64_t record, std::span<const size_t> fields) const = 0;
  /// The bytes of a field that the record has.
  virtual Status read(int64_t record, size_t field,
                      std::vector<std::byte> &bytes) const = 0;
  /// A record as part of a sentence: its file and its place there.
  virtual std::string describe(int64_t record) const = 0;
};

/// 64 random bits of a text.
uint64_t keyOfText(std::string_view text);

/// The samples of WebDataset shards, in the order of the shards: what follows
/// one another in a tar file and has the same name up to the first dot of its
/// last part; what comes after that, in small letters, is the name of the
/// field. `paths` is a list that commas divide; {000..123} in a path means all
/// numbers from one to the other. Code::BadData where a shard is damaged or has
/// a field of a sample twice.
Result<std::unique_ptr<RecordSource>> openShards(const std::string &paths);

/// The images of a folder of folders, each of which is a class: the classes by
/// name, and in each the files by name, those of inner folders as well. Fields:
/// `image`, the file, and `label`, the number of the class in digits.
/// Code::BadData where there is no class, or no image.
Result<std::unique_ptr<RecordSource>>
openImageFolder(const std::string &folder);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_DATA_RECORDS_RECORDSOURCE_H
