#include "runtime/base/ParseJson.h"
#include "runtime/data/records/Compressed.h"
#include "runtime/data/records/RecordSource.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

using namespace tcc;
using namespace tcc::runtime;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

struct Column {
  std::string name, encoding;
  std::optional<uint64_t> size;              ///< nothing: each sample says it
  std::optional<DType> dtype = std::nullopt; ///< of numbers
  bool hasShape = false;                     ///< before the numbers
  bool isKnown = true;

  bool operator==(const Column &) const = default;
};

struct Shard {
  std::shared_ptr<const SampleFile> file;
  int64_t first, end; ///< its samples
};

/// A shard is: u32 count, u32[count + 1] offsets of samples and of their end,
/// the columns again, samples. A sample is: u32 for each column that has no
/// size, in their order; the columns' bytes, in their order.
class Mds final : public RecordSource {
public:
  Mds(std::string folder, Files files)
      : folder(std::move(folder)), files(std::move(files)) {}
  Status open();

  int64_t recordCount() const override {
    return shards.empty() ? 0 : shards.back().end;
  }
  uint64_t keyOf(int64_t record) const override;
  std::span<const std::string> fieldNames() const override { return names; }
  std::optional<DType> dtypeOf(size_t field) const override {
    return columns[field].dtype;
  }
  Status read(int64_t record, std::span<const FieldRead> fields) const override;
  std::string describe(int64_t record) const override;

private:
  template <typename... Parts> Status fail(const Parts &...parts) const {
    return makeError(Code::BadData, "'", (fs::path(folder) / kIndex).string(),
                     "': ", parts...);
  }
  Status addShard(const json &shard);
  Status readColumns(const json &shard);
  const Shard &shardOf(int64_t record) const {
    return *std::ranges::upper_bound(shards, record, {}, &Shard::end);
  }
  Status readSample(int64_t record, std::vector<std::byte> &bytes) const;
  Status cut(std::span<const std::byte> sample,
             std::vector<std::span<const std::byte>> &values) const;

  static constexpr const char *kIndex = "index.json";
  const std::string folder;
  const Files files;
  std::vector<std::string> names;
  std::vector<Column> columns;
  std::vector<Shard> shards;
};

} // namespace

//===----------------------------------------------------------------------===//
// The index
//===----------------------------------------------------------------------===//

static std::optional<DType> findNumbers(std::string_view name) {
  struct Word {
    std::string_view name;
    DType dtype;
  };
  constexpr Word kWords[] = {
      {"int", DType::i64},     {"int8", DType::i8},     {"int16", DType::i16},
      {"int32", DType::i32},   {"int64", DType::i64},   {"uint8", DType::u8},
      {"uint16", DType::u16},  {"uint32", DType::u32},  {"uint64", DType::u64},
      {"float16", DType::f16}, {"float32", DType::f32}, {"float64", DType::f64},
  };
  auto found = std::ranges::find(kWords, name, &Word::name);
  return found == std::end(kWords) ? std::nullopt : std::optional(found->dtype);
}

/// Arrays are ndarray:DTYPE:SHAPE, or ndarray:DTYPE where each value says its
/// shape first.
static Column makeColumn(std::string name, std::string encoding,
                         std::optional<uint64_t> size) {
  constexpr std::string_view kArray = "ndarray:";
  constexpr std::string_view kPlain[] = {
      "str",   "str_int", "str_float", "str_decimal", "json",
      "bytes", "jpeg",    "png",       "jpeg_array",  "jpegarray"};
  Column column = {std::move(name), std::move(encoding), size};
  std::string_view kind = column.encoding;
  if (!kind.starts_with(kArray)) {
    column.dtype = findNumbers(kind);
    column.isKnown = column.dtype || std::ranges::count(kPlain, kind) > 0;
    return column;
  }
  kind.remove_prefix(kArray.size());
  size_t colon = kind.find(':');
  column.dtype = findNumbers(kind.substr(0, colon));
  column.hasShape = colon == kind.npos;
  column.isKnown = column.dtype.has_value();
  return column;
}

Status Mds::readColumns(const json &shard) {
  auto found = [&](const char *key) {
    return shard.value(key, json(json::value_t::array));
  };
  json keys = found("column_names"), encodings = found("column_encodings"),
       sizes = found("column_sizes");
  bool areLists = keys.is_array() && encodings.is_array() && sizes.is_array();
  if (!areLists || keys.empty() || keys.size() != encodings.size() ||
      keys.size() != sizes.size())
    return fail("a shard has no columns");
  std::vector<Column> own;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (!keys[i].is_string() || !encodings[i].is_string() ||
        !(sizes[i].is_null() || sizes[i].is_number_unsigned()))
      return fail("column ", i, " of a shard has no name, encoding or size");
    std::optional<uint64_t> size;
    if (!sizes[i].is_null())
      size = sizes[i].get<uint64_t>();
    own.push_back(makeColumn(keys[i].get<std::string>(),
                             encodings[i].get<std::string>(), size));
  }
  if (columns.empty())
    for (const Column &column : columns = own)
      names.push_back(column.name);
  if (columns != own)
    return fail("its shards have different columns");
  return Status();
}

/// A name of a file in the folder.
static std::optional<std::string> findName(const json &shard, const char *key) {
  json file = shard.value(key, json());
  json name = file.is_object() ? file.value("basename", json()) : json();
  if (!name.is_string())
    return std::nullopt;
  fs::path path = fs::path(name.get<std::string>()).lexically_normal();
  if (path.empty() || path.is_absolute() || *path.begin() == "..")
    return std::nullopt;
  return path.string();
}

Status Mds::addShard(const json &shard) {
  if (!shard.is_object() || shard.value("format", json()) != "mds" ||
      shard.value("version", json()) != 2)
    return fail("expected shards of format mds, version 2");
  json compression = shard.value("compression", json());
  bool isZstd = compression.is_string() &&
                compression.get<std::string>().starts_with("zstd");
  if (!compression.is_null() && !isZstd)
    return makeError(Code::Unsupported, "'", folder,
                     "': shards that are compressed otherwise than with zstd "
                     "are not supported yet");
  auto name = findName(shard, isZstd ? "zip_data" : "raw_data");
  json samples = shard.value("samples", json());
  if (!name || !samples.is_number_unsigned())
    return fail("a shard has no file in the folder, or no number of samples");
  if (Status status = readColumns(shard); !status.ok())
    return status;
  auto file = openDecompressed((fs::path(folder) / *name).string(), files);
  if (!file.ok())
    return file.takeStatus();
  auto count = samples.get<uint64_t>();
  uint32_t own = 0;
  if (Status status =
          (*file)->read(0, std::as_writable_bytes(std::span(&own, 1)));
      !status.ok())
    return status;
  if (own != count || (*file)->size() / sizeof(uint32_t) < count + 2)
    return makeError(Code::BadData, "'", (*file)->path(), "' has ", own,
                     " samples, its index says ", count);
  int64_t first = recordCount();
  shards.push_back({std::move(*file), first, first + int64_t(count)});
  return Status();
}

Status Mds::open() {
  constexpr uint64_t kMost = 256 << 20;
  auto file = files.open((fs::path(folder) / kIndex).string());
  if (!file.ok())
    return file.takeStatus();
  if ((*file)->size() > kMost)
    return fail("it has more than ", kMost, " bytes");
  std::string text((*file)->size(), '\0');
  if (Status status = (*file)->read(0, std::as_writable_bytes(std::span(text)));
      !status.ok())
    return status;
  auto index = parseObject(text);
  json all = index ? index->value("shards", json()) : json();
  if (!all.is_array())
    return fail("it is no index of shards");
  for (const json &shard : all)
    if (Status status = addShard(shard); !status.ok())
      return status;
  return recordCount() > 0 ? Status() : fail("there is no sample");
}

//===----------------------------------------------------------------------===//
// Samples
//===----------------------------------------------------------------------===//

uint64_t Mds::keyOf(int64_t record) const {
  const Shard &shard = shardOf(record);
  return keyOfPlace(shard.file->path(), record - shard.first);
}

std::string Mds::describe(int64_t record) const {
  const Shard &shard = shardOf(record);
  return concat("'", shard.file->path(), "', sample ", record - shard.first,
                " of it");
}

Status Mds::readSample(int64_t record, std::vector<std::byte> &bytes) const {
  const Shard &shard = shardOf(record);
  uint32_t ends[2] = {};
  uint64_t place = sizeof(uint32_t) * uint64_t(record - shard.first + 1);
  if (Status status =
          shard.file->read(place, std::as_writable_bytes(std::span(ends)));
      !status.ok())
    return status;
  if (ends[0] > ends[1] || ends[1] > shard.file->size())
    return makeError(Code::BadData, "it is from byte ", ends[0], " to ",
                     ends[1], ", and its shard has ", shard.file->size());
  bytes.resize(ends[1] - ends[0]);
  return shard.file->read(ends[0], bytes);
}

/// The values of the columns.
Status Mds::cut(std::span<const std::byte> sample,
                std::vector<std::span<const std::byte>> &values) const {
  auto heads = size_t(std::ranges::count_if(
      columns, [](const Column &column) { return !column.size; }));
  Status damaged(Code::BadData, "its values are longer than it is");
  if (sample.size() < heads * sizeof(uint32_t))
    return damaged;
  std::span<const std::byte> sizes = sample;
  sample = sample.subspan(heads * sizeof(uint32_t));
  values.clear();
  for (const Column &column : columns) {
    uint64_t size = column.size.value_or(0);
    if (!column.size) {
      uint32_t own = 0;
      std::memcpy(&own, sizes.data(), sizeof(own));
      sizes = sizes.subspan(sizeof(own));
      size = own;
    }
    if (size > sample.size())
      return damaged;
    values.push_back(sample.first(size));
    sample = sample.subspan(size);
  }
  return Status();
}

/// What is behind the shape of an array: a byte with the number of extents and
/// the logarithm of the bytes of each, and those.
static std::span<const std::byte> skipShape(std::span<const std::byte> value) {
  unsigned head = value.empty() ? 0 : std::to_integer<unsigned>(value[0]);
  size_t size = 1 + (size_t(head >> 2) << (head & 3));
  return size > value.size() ? std::span<const std::byte>()
                             : value.subspan(size);
}

Status Mds::read(int64_t record, std::span<const FieldRead> fields) const {
  thread_local std::vector<std::byte> sample;
  thread_local std::vector<std::span<const std::byte>> values;
  if (Status status = readSample(record, sample); !status.ok())
    return status;
  if (Status status = cut(sample, values); !status.ok())
    return status;
  for (const FieldRead &read : fields) {
    const Column &column = columns[read.field];
    if (!column.isKnown)
      return makeError(Code::Unsupported, "column '", column.name, "' is ",
                       column.encoding, ", which is not supported yet");
    std::span<const std::byte> value = values[read.field];
    if (column.hasShape)
      value = skipShape(value);
    read.bytes->assign(value.begin(), value.end());
  }
  return Status();
}

Result<std::unique_ptr<RecordSource>>
runtime::openMds(const std::string &folder, const Files &files) {
  auto source = std::make_unique<Mds>(folder, files);
  if (Status status = source->open(); !status.ok())
    return status;
  return std::unique_ptr<RecordSource>(std::move(source));
}
