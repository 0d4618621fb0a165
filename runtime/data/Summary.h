//===- Summary.h - What data have -------------------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_DATA_SUMMARY_H
#define TCC_RUNTIME_DATA_SUMMARY_H

#include "runtime/data/images/Image.h"

#include <optional>
#include <string>
#include <vector>

namespace tcc::runtime {

/// A field of records, an array, or a file of tokens.
struct FieldSummary {
  std::string name;
  std::string kind = {}; ///< "image", "text" or a dtype; of an array its shape
  int64_t count = 0;     ///< of records that have it, of samples or of tokens
  uint64_t bytes = 0, least = 0, most = 0; ///< of all, of one
  /// How many values of a record's field have 2^(i-1) to 2^i - 1 bytes.
  std::vector<int64_t> histogram = {};
  std::optional<images::Size> smallest = {}; ///< sides of images
  std::optional<images::Size> largest = {};
};

struct DataSummary {
  std::string source;
  int64_t samples = 0; ///< of records; else 0: that depends on the model
  int64_t lookedAt = 0;
  std::vector<FieldSummary> fields;
  int64_t damaged = 0;
  std::vector<std::string> problems; ///< of the first ten damaged samples
};

/// Looks at some records of a source, or reads all and decodes the images in
/// them. Fails as opening the source does.
Result<DataSummary> summarize(const std::string &source, bool readsAll);

/// Writes an index beside each shard of a source; their paths. Code::Usage
/// where it has none that are worth one: webdataset: has, if not compressed.
Result<std::vector<std::string>> writeIndices(const std::string &source);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_DATA_SUMMARY_H
