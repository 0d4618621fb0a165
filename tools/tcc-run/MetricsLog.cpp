#include "tools/tcc-run/MetricsLog.h"

#include "runtime/base/FileCalls.h"
#include "runtime/base/MappedFile.h"
#include "runtime/package/Names.h"
#include "tools/tcc-run/ResidentMemory.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
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
  MetricsLog log;
  log.path = concat(folder, "/metrics.jsonl");
  std::error_code error;
  bool isThere = fs::is_regular_file(log.path, error);
  if (isThere && !goesOn)
    if (Status status = moveAside(folder, log.path); !status.ok())
      return status;
  log.file = io::retry([&] {
    return io::calls().open(log.path.c_str(), O_WRONLY | O_CREAT | O_APPEND,
                            0666);
  });
  if (log.file < 0)
    return io::cannotWrite(log.path, errno);
  if (isThere && goesOn)
    if (Status status = log.goOn(); !status.ok())
      return status;
  return log;
}

/// Cuts off what is no whole line.
Status MetricsLog::goOn() {
  Result<MappedFile> there = MappedFile::open(path);
  if (!there.ok())
    return there.takeStatus();
  std::span<const std::byte> bytes = there->bytes();
  Kept kept =
      findKept({reinterpret_cast<const char *>(bytes.data()), bytes.size()});
  lastStep = kept.lastStep;
  if (kept.size < bytes.size() &&
      io::retry([&] { return io::calls().ftruncate(file, kept.size); }) != 0)
    return io::cannotWrite(path, errno);
  return Status();
}

MetricsLog &MetricsLog::operator=(MetricsLog &&other) noexcept {
  std::swap(path, other.path);
  std::swap(file, other.file);
  std::swap(lastStep, other.lastStep);
  std::swap(rest, other.rest);
  std::swap(dropped, other.dropped);
  std::swap(failure, other.failure);
  return *this;
}

MetricsLog::~MetricsLog() {
  if (file >= 0)
    io::calls().close(file);
}

//===----------------------------------------------------------------------===//
// Lines
//===----------------------------------------------------------------------===//

/// What is not finite becomes null.
ordered_json MetricsLog::describe(const StepMetrics &metrics, const Pace &pace,
                                  const ordered_json &evaluation) const {
  ordered_json line = {{kStep, metrics.step},
                       {"loss", metrics.loss},
                       {"lr", metrics.lr},
                       {"grad_norm", metrics.gradNorm},
                       {"loss_scale", metrics.lossScale},
                       {"skipped", metrics.skipped},
                       {"samples_per_s", pace.samplesPerSecond},
                       {"stall_s", pace.stall},
                       {"data_wait_s", pace.dataWait}};
  if (pace.exposed)
    line["exposed_communication_s"] = *pace.exposed;
  if (auto bytes = readResidentBytes())
    line["resident_bytes"] = *bytes;
  if (pace.isSpike)
    line["spike"] = true;
  if (metrics.step <= lastStep)
    line[kRedone] = true;
  if (!evaluation.is_null())
    line[format::nameOf(format::EntryKind::eval)] = evaluation;
  return line;
}

void MetricsLog::writeRest() {
  failure = 0;
  while (!rest.empty() && !failure) {
    ssize_t written = io::retry(
        [&] { return io::calls().write(file, rest.data(), rest.size()); });
    if (written <= 0)
      failure = written < 0 ? errno : EIO;
    else
      rest.erase(0, written);
  }
}

Status MetricsLog::write(const StepMetrics &metrics, const Pace &pace,
                         const ordered_json &evaluation) {
  if (file < 0)
    return Status();
  Status status = write(describe(metrics, pace, evaluation));
  lastStep = std::max(lastStep, metrics.step);
  return status;
}

Status MetricsLog::writeAgain(int64_t step, const ordered_json &evaluation) {
  if (file < 0 || evaluation.is_null())
    return Status();
  return write({{kStep, step},
                {kRedone, true},
                {format::nameOf(format::EntryKind::eval), evaluation}});
}

Status MetricsLog::write(const ordered_json &row) {
  constexpr size_t kMostBytes = 1 << 20;
  std::string line = row.dump() + '\n';
  if (rest.size() + line.size() <= kMostBytes)
    rest += line;
  else
    ++dropped;
  bool wasFailing = failure != 0;
  writeRest();
  return failure && !wasFailing ? io::cannotWrite(path, failure) : Status();
}

Status MetricsLog::close() {
  if (file < 0)
    return Status();
  writeRest();
  // A file whose closing was interrupted is closed.
  bool isClosed = io::calls().close(std::exchange(file, -1)) == 0;
  if (!isClosed && errno != EINTR && !failure)
    failure = errno;
  dropped += std::ranges::count(rest, '\n');
  if (dropped > 0)
    return makeError(
        Code::Io, "'", path, "' lacks the lines of ", dropped,
        " updates: ", failure ? std::strerror(failure) : "they were too many");
  return failure ? io::cannotWrite(path, failure) : Status();
}
