#include "runtime/data/SampleSource.h"
#include "runtime/data/records/RecordSource.h"
#include "runtime/data/records/TextRecords.h"

#include <algorithm>
#include <csv.h>

using namespace tcc;
using namespace tcc::runtime;

namespace {

/// libcsv's parser of one row.
class RowParser {
public:
  explicit RowParser(char delimiter) {
    // Quotes must fit: what does not is damage, not text.
    csv_init(&parser, CSV_STRICT | CSV_STRICT_FINI);
    csv_set_delim(&parser, static_cast<unsigned char>(delimiter));
  }
  ~RowParser() { csv_free(&parser); }
  RowParser(const RowParser &) = delete;
  RowParser &operator=(const RowParser &) = delete;

  /// The fields of the first row of a text; nothing where it is no CSV.
  std::optional<std::vector<std::string>> parse(std::string_view text) {
    row.clear();
    isDone = false;
    bool isWhole = csv_parse(&parser, text.data(), text.size(), addField,
                             endRow, this) == text.size();
    if (csv_fini(&parser, addField, endRow, this) != 0 || !isWhole)
      return std::nullopt;
    return std::move(row);
  }

private:
  static void addField(void *bytes, size_t size, void *own) {
    auto *self = static_cast<RowParser *>(own);
    if (!self->isDone)
      self->row.emplace_back(static_cast<const char *>(bytes), size);
  }
  static void endRow(int, void *own) {
    static_cast<RowParser *>(own)->isDone = true;
  }

  csv_parser parser;
  std::vector<std::string> row;
  bool isDone = false;
};

class Csv final : public RecordSource {
public:
  Csv(char delimiter, const Files &files)
      : delimiter(delimiter), rows(/*hasQuotes=*/true, files) {}
  Status add(const std::string &path);

  int64_t recordCount() const override { return rows.count(); }
  uint64_t keyOf(int64_t record) const override { return rows.keyOf(record); }
  std::span<const std::string> fieldNames() const override { return names; }
  bool isTable() const override { return true; }
  Status read(int64_t record, std::span<const FieldRead> fields) const override;
  std::string describe(int64_t record) const override {
    return rows.describe(record);
  }

private:
  const char delimiter;
  std::vector<std::string> names;
  TextRecords rows;
};

} // namespace

Status Csv::add(const std::string &path) {
  constexpr std::string_view kByteOrder = "\xef\xbb\xbf";
  std::string header;
  if (Status status = rows.add(path, &header); !status.ok())
    return status;
  if (header.starts_with(kByteOrder))
    header.erase(0, kByteOrder.size());
  auto own = RowParser(delimiter).parse(header);
  if (!own || own->empty())
    return makeError(Code::BadData, "'", path,
                     "': its first line is no row of CSV with names");
  if (names.empty())
    names = *own;
  if (names != *own)
    return makeError(Code::BadData, "'", path,
                     "' has other columns than the file before it");
  for (size_t i = 0; i < names.size(); ++i)
    if (std::ranges::count(names, names[i]) > 1)
      return makeError(Code::BadData, "'", path, "' has two columns '",
                       names[i].substr(0, 64), "'");
  return Status();
}

Status Csv::read(int64_t record, std::span<const FieldRead> fields) const {
  thread_local std::string text;
  if (Status status = rows.read(record, text); !status.ok())
    return status;
  auto row = RowParser(delimiter).parse(text);
  if (!row)
    return Status(Code::BadData, "it is no row of CSV: its quotes do not fit");
  if (row->size() != names.size())
    return makeError(Code::BadData, "its row has ", row->size(),
                     " fields, expected ", names.size());
  for (const FieldRead &read : fields) {
    const std::string &field = (*row)[read.field];
    if (read.isFile) {
      if (Status status = rows.readBeside(record, field, *read.bytes);
          !status.ok())
        return status;
      continue;
    }
    auto bytes = std::as_bytes(std::span(field));
    read.bytes->assign(bytes.begin(), bytes.end());
  }
  return Status();
}

Result<std::unique_ptr<RecordSource>> runtime::openCsv(const std::string &list,
                                                       const Files &files) {
  auto source =
      std::make_unique<Csv>(list.ends_with(".tsv") ? '\t' : ',', files);
  for (const std::string &path : splitPaths(list))
    if (Status status = source->add(path); !status.ok())
      return status;
  if (source->recordCount() == 0)
    return makeError(Code::BadData, "'", list, "': there is no row");
  return std::unique_ptr<RecordSource>(std::move(source));
}
