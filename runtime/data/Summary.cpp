#include "runtime/data/Summary.h"

#include "runtime/data/DataKind.h"
#include "runtime/data/records/ShardIndex.h"

#include <algorithm>
#include <array>
#include <bit>

using namespace tcc;
using namespace tcc::runtime;

static constexpr int64_t kLookedAt = 256;
static constexpr size_t kMostProblems = 10;

namespace {

/// Looks at records one after the other.
class RecordLook {
public:
  RecordLook(const RecordSource &records, bool readsAll)
      : records(records), readsAll(readsAll) {
    for (const std::string &name : records.fieldNames())
      found.fields.push_back({.name = name});
  }

  DataSummary run();

private:
  Status look(int64_t record, size_t field);
  Status lookAtImage(FieldSummary &summary);

  const RecordSource &records;
  const bool readsAll;
  DataSummary found;
  std::vector<std::byte> bytes;
};

} // namespace

static void addBytes(FieldSummary &field, uint64_t size) {
  field.least = field.count == 0 ? size : std::min(field.least, size);
  field.most = std::max(field.most, size);
  field.bytes += size;
  ++field.count;
  auto place = size_t(std::bit_width(size));
  if (field.histogram.size() <= place)
    field.histogram.resize(place + 1);
  ++field.histogram[place];
}

/// What no format's magic number says is text.
Status RecordLook::lookAtImage(FieldSummary &summary) {
  auto size = images::readSize(bytes);
  if (!size.ok())
    return summary.kind == "image" ? size.takeStatus() : Status();
  summary.kind = "image";
  auto extend = [](std::optional<images::Size> &to, images::Size size,
                   auto choose) {
    images::Size before = to.value_or(size);
    to = images::Size{choose(before.width, size.width),
                      choose(before.height, size.height)};
  };
  extend(summary.smallest, *size, [](int a, int b) { return std::min(a, b); });
  extend(summary.largest, *size, [](int a, int b) { return std::max(a, b); });
  thread_local images::Image image;
  return readsAll ? images::decode(bytes, {0, 0, *size}, image) : Status();
}

static bool isNameOfImage(std::span<const std::byte> bytes) {
  std::string_view text(reinterpret_cast<const char *>(bytes.data()),
                        bytes.size());
  constexpr std::string_view kEndings[] = {".jpg", ".jpeg", ".png", ".webp"};
  return text.size() < 4096 &&
         std::ranges::any_of(
             kEndings, [&](auto ending) { return text.ends_with(ending); });
}

Status RecordLook::look(int64_t record, size_t field) {
  FieldSummary &summary = found.fields[field];
  std::array fields = {field};
  if (!records.findField(record, fields))
    return Status();
  bool isMissing = false;
  FieldRead read = {field, /*isFile=*/false, &bytes, &isMissing};
  Status status = records.read(record, std::span(&read, 1));
  if (!status.ok() || isMissing)
    return status;
  if (isNameOfImage(bytes)) {
    read.isFile = true;
    if (Status status = records.read(record, std::span(&read, 1)); !status.ok())
      return status;
  }
  addBytes(summary, bytes.size());
  if (auto dtype = records.dtypeOf(field)) {
    summary.kind = traitsOf(*dtype).name;
    return Status();
  }
  return lookAtImage(summary);
}

DataSummary RecordLook::run() {
  found.samples = records.recordCount();
  found.lookedAt =
      readsAll ? found.samples : std::min(found.samples, kLookedAt);
  for (int64_t i = 0; i < found.lookedAt; ++i) {
    int64_t record = readsAll ? i : i * found.samples / found.lookedAt;
    Status status;
    for (size_t field = 0; field < found.fields.size() && status.ok(); ++field)
      status = look(record, field);
    if (status.ok())
      continue;
    ++found.damaged;
    if (found.problems.size() < kMostProblems)
      found.problems.push_back(concat(records.describe(record), ", sample ",
                                      record, ": ", status.message()));
  }
  for (FieldSummary &field : found.fields)
    if (field.kind.empty())
      field.kind = field.count ? "text" : "nothing";
  return std::move(found);
}

namespace {

/// Summarizes data of each kind.
struct Summarizer {
  const std::string &path;
  bool readsAll;

  template <typename T> Result<DataSummary> operator()(Opener<T> open) const {
    auto opened = open(path, /*files=*/{});
    return opened.ok() ? look(std::move(*opened)) : opened.takeStatus();
  }

private:
  Result<DataSummary> look(NamedArrays arrays) const;
  Result<DataSummary> look(std::vector<TokenFile> files) const;
  Result<DataSummary> look(std::unique_ptr<RecordSource> records) const {
    return RecordLook(*records, readsAll).run();
  }
};

} // namespace

Result<DataSummary> Summarizer::look(NamedArrays arrays) const {
  DataSummary found;
  for (const std::string &name : arrays.names) {
    auto array = arrays.open(name);
    if (!array.ok())
      return array.takeStatus();
    std::string kind(traitsOf((*array)->dtype).name);
    for (int64_t extent : (*array)->shape)
      kind += concat(kind.find(' ') == kind.npos ? " " : "x", extent);
    found.fields.push_back(
        {.name = name,
         .kind = kind,
         .count = (*array)->shape.empty() ? 0 : (*array)->shape[0],
         .bytes = bytesOf((*array)->dtype, (*array)->shape).value_or(0)});
  }
  return found;
}

Result<DataSummary> Summarizer::look(std::vector<TokenFile> files) const {
  DataSummary found;
  for (const TokenFile &file : files)
    found.fields.push_back(
        {.name = file.file->path(),
         .kind = concat(traitsOf(file.dtype).name, " tokens"),
         .count = file.count,
         .bytes = file.file->size()});
  return found;
}

Result<DataSummary> runtime::summarize(const std::string &source,
                                       bool readsAll) {
  auto data = findData(source);
  if (!data.ok())
    return data.takeStatus();
  auto found = std::visit(Summarizer{data->path, readsAll}, data->kind->open);
  if (found.ok())
    found->source = source;
  return found;
}

Result<std::vector<std::string>>
runtime::writeIndices(const std::string &source) {
  auto data = findData(source);
  if (!data.ok())
    return data.takeStatus();
  auto *open =
      std::get_if<Opener<std::unique_ptr<RecordSource>>>(&data->kind->open);
  if (!open || *open != openShards)
    return makeError(Code::Usage, "'", source,
                     "' needs no index: webdataset: has one");
  auto paths = listShards(data->path);
  if (!paths.ok())
    return paths;
  std::vector<std::string> written;
  for (const std::string &path : *paths) {
    auto shard = SampleFile::open(path);
    if (!shard.ok())
      return shard.takeStatus();
    auto index = scanShard(**shard);
    if (!index.ok())
      return index.takeStatus();
    auto file = writeShardIndex(**shard, *index);
    if (!file.ok())
      return file.takeStatus();
    written.push_back(std::move(*file));
  }
  return written;
}
