#include "runtime/base/ParseJson.h"
#include "runtime/data/SampleSource.h"
#include "runtime/data/records/RecordSource.h"
#include "runtime/data/records/TextRecords.h"

using namespace tcc;
using namespace tcc::runtime;
using nlohmann::ordered_json;

namespace {

class JsonLines final : public RecordSource {
public:
  explicit JsonLines(const Files &files) : lines(/*hasQuotes=*/false, files) {}

  Status add(const std::string &path) {
    return lines.add(path, /*header=*/nullptr);
  }
  /// Once all files are added.
  Status readNames();

  int64_t recordCount() const override { return lines.count(); }
  uint64_t keyOf(int64_t record) const override { return lines.keyOf(record); }
  std::span<const std::string> fieldNames() const override { return names; }
  bool hasNumbers(size_t field) const override { return !areTexts[field]; }
  Status read(int64_t record, std::span<const FieldRead> fields) const override;
  std::string describe(int64_t record) const override {
    return lines.describe(record);
  }

private:
  Result<ordered_json> parse(int64_t record) const;
  Status readField(int64_t record, const ordered_json &object,
                   const FieldRead &read) const;

  std::vector<std::string> names;
  std::vector<bool> areTexts; ///< values of the first line
  TextRecords lines;
};

} // namespace

Result<ordered_json> JsonLines::parse(int64_t record) const {
  thread_local std::string text;
  if (Status status = lines.read(record, text); !status.ok())
    return status;
  auto object = parseObject<ordered_json>(text);
  if (!object)
    return Status(Code::BadData, "it is no object of JSON, or too deep");
  return std::move(*object);
}

Status JsonLines::readNames() {
  auto first = parse(0);
  if (!first.ok())
    return makeError(Code::BadData, describe(0), ": ",
                     first.takeStatus().message());
  for (auto &[key, value] : first->items()) {
    names.push_back(key);
    areTexts.push_back(value.is_string());
  }
  return Status();
}

Status JsonLines::readField(int64_t record, const ordered_json &object,
                            const FieldRead &read) const {
  const std::string &name = names[read.field];
  auto found = object.find(name);
  bool isMissing = found == object.end() || found->is_null();
  if (isMissing && read.isMissing) {
    *read.isMissing = true;
    return Status();
  }
  if (isMissing)
    return makeError(Code::BadData, "it has no '", name, "'");
  if (found->is_object() || (read.isFile && !found->is_string()))
    return makeError(Code::BadData, "its '", name, "' is a ",
                     found->type_name(), ", expected ",
                     read.isFile ? "the path of a file"
                                 : "a text, a number or a list");
  std::string text =
      found->is_string()
          ? found->get<std::string>()
          : found->dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  if (read.isFile)
    return lines.readBeside(record, text, *read.bytes);
  auto bytes = std::as_bytes(std::span(text));
  read.bytes->assign(bytes.begin(), bytes.end());
  return Status();
}

Status JsonLines::read(int64_t record,
                       std::span<const FieldRead> fields) const {
  auto object = parse(record);
  if (!object.ok())
    return object.takeStatus();
  for (const FieldRead &read : fields)
    if (Status status = readField(record, *object, read); !status.ok())
      return status;
  return Status();
}

Result<std::unique_ptr<RecordSource>>
runtime::openJsonLines(const std::string &list, const Files &files) {
  auto source = std::make_unique<JsonLines>(files);
  for (const std::string &path : splitPaths(list))
    if (Status status = source->add(path); !status.ok())
      return status;
  if (source->recordCount() == 0)
    return makeError(Code::BadData, "'", list, "': there is no line");
  if (Status status = source->readNames(); !status.ok())
    return status;
  return std::unique_ptr<RecordSource>(std::move(source));
}
