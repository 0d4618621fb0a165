#include "tools/tcc-run/MetricsLog.h"

#include "runtime/base/FileCalls.h"
#include "runtime/base/MappedFile.h"

#include <algorithm>
#include <filesystem>

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;
using nlohmann::ordered_json;
namespace fs = std::filesystem;

static constexpr char kStep[] = "step", kRedone[] = "redone";

//===----------------------------------------------------------------------===//
// The file that is there
//===----------------------------------------------------------------------===//

namespace {

/// What a file has that a run goes on with.
struct Kept {
  size_t size = 0; ///< up to the end of its last line that is whole
  int64_t lastStep = 0;
};

} // namespace

/// The step of a line; nothing where that is no whole one.
static std::optional<int64_t> readStep(const ordered_json &row) {
  bool isWhole =
      row.is_object() && row.contains(kStep) && row[kStep].is_number_integer();
  return isWhole ? std::optional(row[kStep].get<int64_t>()) : std::nullopt;
}

/// A line that is not of an update made again has a higher step than all before
/// it: only it and lines after it are read.
static Kept findKept(std::string_view text) {
  Kept kept;
  for (size_t end = text.rfind('\n') + 1, begin; end > 0; end = begin) {
    begin = end > 1 ? text.rfind('\n', end - 2) + 1 : 0;
    auto row = ordered_json::parse(text.substr(begin, end - begin), nullptr,
                                   /*allow_exceptions=*/false);
    std::optional<int64_t> step = readStep(row);
    if (!step)
      continue;
    kept.size = std::max(kept.size, end);
    kept.lastStep = std::max(kept.lastStep, *step);
    if (!row.contains(kRedone))
      break;
  }
  return kept;
}

/// Gives the file of another run a name of its own.
static Status moveAside(const std::string &folder, const std::string &path) {
  std::error_code error;
  for (int number = 1;; ++number) {
    std::string other = concat(folder, "/metrics.", number, ".jsonl");
    if (!fs::exists(fs::symlink_status(other, error)))
      return io::move(path, other);
  }
}

Result<MetricsLog> MetricsLog::open(const std::string &folder, bool goesOn) {
  if (Status status = io::makeFolders(folder); !status.ok())
    return status;
  std::string path = concat(folder, "/metrics.jsonl");
  std::error_code error;
  bool isThere = fs::is_regular_file(path, error);
  if (isThere && !goesOn)
    if (Status status = moveAside(folder, path); !status.ok())
      return status;
  auto file = LogFile::open(path, /*flags=*/0, "lines");
  if (!file.ok())
    return file.takeStatus();
  MetricsLog log;
  log.file = std::move(*file);
  if (isThere && goesOn)
    if (Status status = log.goOn(); !status.ok())
      return status;
  return log;
}

/// Cuts off what is no whole line.
Status MetricsLog::goOn() {
  Result<MappedFile> there = MappedFile::open(file.getPath());
  if (!there.ok())
    return there.takeStatus();
  std::span<const std::byte> bytes = there->bytes();
  Kept kept =
      findKept({reinterpret_cast<const char *>(bytes.data()), bytes.size()});
  lastStep = kept.lastStep;
  return kept.size < bytes.size() ? file.cut(kept.size) : Status();
}

//===----------------------------------------------------------------------===//
// Lines
//===----------------------------------------------------------------------===//

/// What is not finite becomes null.
static std::string print(const ordered_json &row) { return row.dump() + '\n'; }

Status MetricsLog::write(const UpdateRecord &record) {
  if (!file.isOpen())
    return Status();
  ordered_json line = {{kStep, record.step}};
  for (const LoggedValue &logged : record.values)
    line[logged.name] = logged.value;
  if (record.step <= lastStep)
    line[kRedone] = true;
  if (!record.evaluation.is_null())
    line[nameOfEvaluation()] = record.evaluation;
  lastStep = std::max(lastStep, record.step);
  return file.add(print(line));
}

Status MetricsLog::writeAgain(int64_t step, const ordered_json &evaluation) {
  if (!file.isOpen() || evaluation.is_null())
    return Status();
  return file.add(print(
      {{kStep, step}, {kRedone, true}, {nameOfEvaluation(), evaluation}}));
}
