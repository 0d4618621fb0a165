//===- RecordSource.h - Samples of named fields -----------------*- C++ -*-===//
#ifndef TCC_RUNTIME_DATA_RECORDS_RECORDSOURCE_H
#define TCC_RUNTIME_DATA_RECORDS_RECORDSOURCE_H

#include "runtime/data/SampleFile.h"
#include "runtime/package/DType.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tcc::runtime {

/// A field of a record that is to be read.
struct FieldRead {
  size_t field;
  bool isFile; ///< wanted is a file, where the field is its path
  std::vector<std::byte> *bytes;
  /// Set where the record has not the field, which is damage without it.
  bool *isMissing = nullptr;
};

/// Records by number, each of fields that have names. Callable from any thread.
class RecordSource {
public:
  virtual ~RecordSource() = default;
  virtual int64_t recordCount() const = 0;
  /// See SampleSource.
  virtual uint64_t keyOf(int64_t record) const = 0;
  /// The names of the fields of all records; a record may lack some.
  virtual std::span<const std::string> fieldNames() const = 0;
  /// The type of the little-endian numbers that a field is; nothing where it is
  /// text or a file.
  virtual std::optional<DType> dtypeOf(size_t field) const;
  /// Whether a field is numbers, not text that may be a path or a file.
  virtual bool hasNumbers(size_t field) const {
    return dtypeOf(field).has_value();
  }
  /// Whether records are rows of a table: what no other tensor has is for the
  /// one that has nothing.
  virtual bool isTable() const { return false; }
  /// The first of these fields that a record has, numbers of the names; nothing
  /// if it has none of them. Where only reading a record tells, the first one.
  virtual std::optional<size_t> findField(int64_t record,
                                          std::span<const size_t> fields) const;
  /// Reads fields that `findField` has found. Code::BadData where the record is
  /// damaged, or has not one of them.
  virtual Status read(int64_t record,
                      std::span<const FieldRead> fields) const = 0;
  /// A record as part of a sentence: its file and its place there.
  virtual std::string describe(int64_t record) const = 0;
};

/// 64 random bits of a text.
uint64_t keyOfText(std::string_view text);
/// The same of the name of a file, without its folder, and a number in it.
uint64_t keyOfPlace(std::string_view path, int64_t number);

/// The samples of WebDataset shards, in the order of the shards: what follows
/// one another in a tar file and has the same name up to the first dot of its
/// last part; what comes after that, in small letters, is the name of the
/// field. `paths` is a list that commas divide; {000..123} in a path means all
/// numbers from one to the other. Code::BadData where a shard is damaged or has
/// a field of a sample twice.
Result<std::unique_ptr<RecordSource>> openShards(const std::string &paths,
                                                 const Files &files);

/// The paths that `openShards` opens.
Result<std::vector<std::string>> listShards(const std::string &paths);

/// The images of a folder of folders, each of which is a class: the classes by
/// name, and in each the files by name, those of inner folders as well. Fields:
/// `image`, the file, and `label`, the number of the class in digits.
/// Code::BadData where there is no class, or no image.
Result<std::unique_ptr<RecordSource>> openImageFolder(const std::string &folder,
                                                      const Files &files);

/// The rows of CSV files (RFC 4180), or of tabs in place of commas where a name
/// ends in .tsv; `paths` is a list that commas divide. The first row of each
/// has the names of the fields, the same in all. Where a file is wanted, a
/// field is its path, relative to the folder of the CSV file and inside it.
/// Code::BadData where there are no names, two alike, or other ones.
Result<std::unique_ptr<RecordSource>> openCsv(const std::string &paths,
                                              const Files &files);

/// The lines of files, each an object of JSON; `paths` is a list that commas
/// divide. The fields are the keys of the first line: texts, numbers, and lists
/// of them; paths of files as in CSV.
Result<std::unique_ptr<RecordSource>> openJsonLines(const std::string &paths,
                                                    const Files &files);

/// The samples of a folder that MosaicML's streaming writes: its index.json and
/// shards of format mds, version 2. Columns of numbers, texts and files; others
/// are Code::Unsupported once they are read. Code::BadData where the index or a
/// shard is damaged.
Result<std::unique_ptr<RecordSource>> openMds(const std::string &folder,
                                              const Files &files);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_DATA_RECORDS_RECORDSOURCE_H
