//===- TextRecords.h - Records that are lines of text -----------*- C++ -*-===//
#ifndef TCC_RUNTIME_DATA_RECORDS_TEXTRECORDS_H
#define TCC_RUNTIME_DATA_RECORDS_TEXTRECORDS_H

#include "runtime/data/SampleFile.h"

#include <string_view>
#include <vector>

namespace tcc::runtime {

/// Where records lie in text files, each a line; lines of blanks are none.
/// Callable from any thread once all files are added.
class TextRecords {
public:
  /// A line of more bytes is damage.
  static constexpr uint64_t kLongest = 64 << 20;

  /// `hasQuotes`: the end of a line between two quotes is none, as in CSV.
  TextRecords(bool hasQuotes, Files files)
      : hasQuotes(hasQuotes), opening(std::move(files)) {}

  /// Adds the lines of a file, but for the first one if `header` takes it.
  Status add(const std::string &path, std::string *header);

  int64_t count() const { return int64_t(begins.size()); }
  /// The line, and what ends it.
  Status read(int64_t record, std::string &text) const;
  /// 64 random bits of the file's name and the number of the line.
  uint64_t keyOf(int64_t record) const;
  /// The file and the byte where it begins, as part of a sentence.
  std::string describe(int64_t record) const;
  /// Reads a whole file in the folder of the record's own. Code::BadData where
  /// the path leaves that folder.
  Status readBeside(int64_t record, std::string_view path,
                    std::vector<std::byte> &bytes) const;

private:
  struct File {
    std::shared_ptr<const SampleFile> file;
    int64_t first, end; ///< its records
  };
  const File &fileOf(int64_t record) const;
  Status index(const SampleFile &file);

  bool hasQuotes;
  Files opening;
  std::vector<File> files;
  std::vector<uint64_t> begins; ///< of each record in its file
};

} // namespace tcc::runtime

#endif // TCC_RUNTIME_DATA_RECORDS_TEXTRECORDS_H
