#include "runtime/data/SampleSource.h"
#include "runtime/data/records/Compressed.h"
#include "runtime/data/records/RecordSource.h"
#include "runtime/data/records/ShardIndex.h"
#include "runtime/package/Digest.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>

using namespace tcc;
using namespace tcc::runtime;

namespace {

using Piece = ShardIndex::Piece;

struct Shard {
  std::shared_ptr<const SampleFile> file;
  int64_t endRecord; ///< the first that is of a later shard
};

class Shards final : public RecordSource {
public:
  Status add(const std::string &path, const Files &files);

  int64_t recordCount() const override { return int64_t(ends.size()); }
  uint64_t keyOf(int64_t record) const override { return keys[size_t(record)]; }
  std::span<const std::string> fieldNames() const override { return names; }
  std::optional<size_t>
  findField(int64_t record, std::span<const size_t> fields) const override;
  Status read(int64_t record, std::span<const FieldRead> fields) const override;
  std::string describe(int64_t record) const override;

private:
  std::span<const Piece> piecesOf(int64_t record) const {
    size_t begin = record == 0 ? 0 : ends[size_t(record) - 1];
    return std::span(pieces).subspan(begin, ends[size_t(record)] - begin);
  }
  const Piece *find(int64_t record, size_t field) const;
  const SampleFile &fileOf(int64_t record) const;
  size_t numberOf(const std::string &name);

  std::vector<Shard> shards;
  std::vector<std::string> names; ///< of fields
  std::vector<Piece> pieces;      ///< of all records
  std::vector<size_t> ends;       ///< of each record among the pieces
  std::vector<uint64_t> keys;     ///< of each record
};

} // namespace

std::optional<DType> RecordSource::dtypeOf(size_t) const {
  return std::nullopt;
}

std::optional<size_t>
RecordSource::findField(int64_t, std::span<const size_t> fields) const {
  return fields.empty() ? std::nullopt : std::optional(fields[0]);
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

const Piece *Shards::find(int64_t record, size_t field) const {
  auto own = piecesOf(record);
  auto found = std::ranges::find(own, field, &Piece::field);
  return found == own.end() ? nullptr : &*found;
}

std::optional<size_t> Shards::findField(int64_t record,
                                        std::span<const size_t> fields) const {
  for (size_t field : fields)
    if (find(record, field))
      return field;
  return std::nullopt;
}

const SampleFile &Shards::fileOf(int64_t record) const {
  return *std::ranges::upper_bound(shards, record, {}, &Shard::endRecord)->file;
}

Status Shards::read(int64_t record, std::span<const FieldRead> fields) const {
  for (const FieldRead &read : fields) {
    const Piece &piece = *find(record, read.field);
    read.bytes->resize(piece.size);
    if (Status status = fileOf(record).read(piece.offset, *read.bytes);
        !status.ok())
      return status;
  }
  return Status();
}

std::string Shards::describe(int64_t record) const {
  return concat("'", fileOf(record).path(), "' at byte ",
                piecesOf(record).front().offset);
}

uint64_t runtime::keyOfText(std::string_view text) {
  format::Digest digest = digestOf(std::as_bytes(std::span(text)));
  uint64_t key = 0;
  std::memcpy(&key, digest.bytes, sizeof(key));
  return key;
}

uint64_t runtime::keyOfPlace(std::string_view path, int64_t number) {
  return keyOfText(concat(path.substr(path.rfind('/') + 1), "/", number));
}

//===----------------------------------------------------------------------===//
// The index
//===----------------------------------------------------------------------===//

size_t Shards::numberOf(const std::string &name) {
  auto found = std::ranges::find(names, name);
  if (found == names.end())
    found = names.insert(names.end(), name);
  return size_t(found - names.begin());
}

Status Shards::add(const std::string &path, const Files &files) {
  auto file = openDecompressed(path, files);
  if (!file.ok())
    return file.takeStatus();
  auto index = findShardIndex(**file);
  if (!index.ok())
    return index.takeStatus();
  std::vector<size_t> fields;
  for (const std::string &field : index->fields)
    fields.push_back(numberOf(field));
  // Shards may number their samples alike.
  std::string name = path.substr(path.rfind('/') + 1);
  for (const std::string &own : index->names)
    keys.push_back(keyOfText(concat(name, "/", own)));
  for (size_t end : index->ends)
    ends.push_back(pieces.size() + end);
  for (const Piece &piece : index->pieces)
    pieces.push_back({piece.offset, piece.size, fields[piece.field]});
  shards.push_back({std::move(*file), recordCount()});
  return Status();
}

/// The paths that a pattern of numbers in braces means.
static Result<std::vector<std::string>> expand(const std::string &pattern) {
  size_t open = pattern.find('{'), dots = pattern.find("..", open),
         close = pattern.find('}', open);
  if (open == pattern.npos)
    return std::vector{pattern};
  auto read = [&](size_t begin, size_t end) {
    int64_t value = -1;
    const char *last = pattern.data() + end;
    auto [rest, error] = std::from_chars(pattern.data() + begin, last, value);
    return error == std::errc() && rest == last ? value : -1;
  };
  constexpr int64_t kMost = 1'000'000;
  bool isWhole = dots < close && close != pattern.npos;
  int64_t first = isWhole ? read(open + 1, dots) : -1;
  int64_t last = isWhole ? read(dots + 2, close) : -1;
  if (first < 0 || last < first || last - first >= kMost ||
      last == std::numeric_limits<int64_t>::max())
    return makeError(Code::Usage, "'", pattern,
                     "': expected {FIRST..LAST} of up to ", kMost, " numbers");
  auto tails = expand(pattern.substr(close + 1));
  if (!tails.ok())
    return tails.takeStatus();
  std::vector<std::string> paths;
  for (int64_t i = first; i <= last; ++i) {
    std::string digits = std::to_string(i);
    size_t width = std::max(dots - open - 1, digits.size());
    digits.insert(0, width - digits.size(), '0');
    for (const std::string &tail : *tails)
      paths.push_back(concat(pattern.substr(0, open), digits, tail));
    if (paths.size() > size_t(kMost))
      return makeError(Code::Usage, "'", pattern, "' means more than ", kMost,
                       " files");
  }
  return paths;
}

Result<std::vector<std::string>> runtime::listShards(const std::string &list) {
  std::vector<std::string> all;
  for (const std::string &pattern : splitPaths(list)) {
    auto paths = expand(pattern);
    if (!paths.ok())
      return paths;
    all.insert(all.end(), paths->begin(), paths->end());
  }
  return all;
}

Result<std::unique_ptr<RecordSource>>
runtime::openShards(const std::string &list, const Files &files) {
  auto source = std::make_unique<Shards>();
  auto paths = listShards(list);
  if (!paths.ok())
    return paths.takeStatus();
  for (const std::string &path : *paths)
    if (Status status = source->add(path, files); !status.ok())
      return status;
  if (source->recordCount() == 0)
    return makeError(Code::BadData, "'", list, "': there is no sample");
  return std::unique_ptr<RecordSource>(std::move(source));
}
