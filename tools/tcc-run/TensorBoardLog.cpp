#include "tools/tcc-run/TensorBoardLog.h"

#include "runtime/base/FileCalls.h"

#include <charconv>
#include <chrono>
#include <cmath>
#include <fcntl.h>
#include <filesystem>
#include <iomanip>
#include <sstream>
#include <unistd.h>

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;
using nlohmann::ordered_json;
namespace fs = std::filesystem;

//===----------------------------------------------------------------------===//
// The file
//===----------------------------------------------------------------------===//

/// What the names of event files begin with; seconds since 1970 come next.
static constexpr std::string_view kPrefix = "events.out.tfevents.";

static double getTime() {
  auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

/// Seconds for the name of a file behind all of a folder: readers take files in
/// the order of their names, whatever clocks say.
static Result<int64_t> chooseSeconds(const std::string &folder) {
  auto seconds = static_cast<int64_t>(getTime());
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), last;
       !error && entry != last; entry.increment(error)) {
    std::string name = entry->path().filename();
    if (!name.starts_with(kPrefix))
      continue;
    // More digits are no seconds: a name with them comes elsewhere.
    constexpr size_t kDigits = 10;
    int64_t other = 0;
    const char *begin = name.data() + kPrefix.size();
    auto end = std::from_chars(begin, name.data() + name.size(), other);
    if (end.ptr - begin <= ptrdiff_t(kDigits))
      seconds = std::max(seconds, other + 1);
  }
  if (error)
    return makeError(Code::Io, "cannot list '", folder, "': ", error.message());
  return seconds;
}

static std::string makeName(int64_t seconds) {
  char host[256] = "";
  gethostname(host, sizeof(host) - 1);
  std::ostringstream name;
  name << kPrefix << std::setfill('0') << std::setw(10) << seconds << '.'
       << host << '.' << getpid();
  return name.str();
}

Result<TensorBoardLog> TensorBoardLog::open(const std::string &folder,
                                            int64_t stepCount) {
  if (Status status = io::makeFolders(folder); !status.ok())
    return status;
  Result<int64_t> seconds = chooseSeconds(folder);
  if (!seconds.ok())
    return seconds.takeStatus();
  auto file =
      LogFile::open(concat(folder, "/", makeName(*seconds)), O_EXCL, "records");
  if (!file.ok())
    return file.takeStatus();
  TensorBoardLog log;
  log.file = std::move(*file);
  log.lastStep = stepCount;
  // Step 0 has what is said before the first update.
  int64_t first = stepCount == 0 ? 0 : stepCount + 1;
  log.head = makeVersionRecord(getTime()) + makeStartRecord(getTime(), first);
  return log;
}

//===----------------------------------------------------------------------===//
// Events
//===----------------------------------------------------------------------===//

/// Tables have no plugin.
static void addEvaluation(Summary &summary, const ordered_json &evaluation) {
  for (const auto &[name, value] : evaluation.items())
    if (value.is_number())
      summary.addNumber(concat(nameOfEvaluation(), "/", name), value);
}

Status TensorBoardLog::write(const UpdateRecord &record) {
  if (!isOpen())
    return Status();
  Summary summary;
  for (const auto &[group, name, logged] : record.values) {
    std::string tag = concat(group, "/", name);
    double value = logged.is_boolean() ? logged.get<bool>() : double(logged);
    if (!std::isnan(value))
      hadNumbers.insert(tag);
    if (hadNumbers.contains(tag))
      summary.addNumber(tag, value);
  }
  addEvaluation(summary, record.evaluation);
  if (record.step <= lastStep)
    head += makeStartRecord(getTime(), record.step);
  lastStep = record.step;
  return write(record.step, summary);
}

Status TensorBoardLog::writeEvaluation(int64_t step,
                                       const ordered_json &evaluation) {
  Summary summary;
  addEvaluation(summary, evaluation);
  return write(step, summary);
}

Status TensorBoardLog::write(int64_t step, const Summary &summary) {
  if (!isOpen() || summary.getMessage().empty())
    return Status();
  std::string record = head + makeRecord(getTime(), step, summary);
  // What hides other events is not lost with one.
  if (file.hasRoomFor(record.size()))
    head.clear();
  return file.add(std::move(record));
}
