#include "tools/tcc-run/Progress.h"

#include "runtime/package/Names.h"

#include <cstdio>
#include <filesystem>
#include <unistd.h>

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;

//===----------------------------------------------------------------------===//
// The line
//===----------------------------------------------------------------------===//

ProgressLine::ProgressLine(int64_t first, int64_t last, bool isQuiet)
    : first(first), last(last), isShown(!isQuiet && isatty(STDERR_FILENO)) {}

/// "1:02:03" or "2:03".
static std::string formatTime(double seconds) {
  constexpr int kMinute = 60, kHour = 3600;
  auto whole = static_cast<int64_t>(seconds + 0.5);
  char text[32];
  int hours = whole / kHour, minutes = whole % kHour / kMinute;
  int rest = whole % kMinute;
  if (hours)
    std::snprintf(text, sizeof(text), "%d:%02d:%02d", hours, minutes, rest);
  else
    std::snprintf(text, sizeof(text), "%d:%02d", minutes, rest);
  return text;
}

static std::string formatNumber(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.4g", value);
  return text;
}

void ProgressLine::update(const StepMetrics &metrics, const Pace &average) {
  constexpr std::chrono::milliseconds kInterval(200);
  Clock::time_point now = Clock::now();
  if (!isShown || now - shown < kInterval)
    return;
  shown = now;
  double elapsed = std::chrono::duration<double>(now - start).count();
  double left = elapsed / (metrics.step - first) *
                static_cast<double>(last - metrics.step);
  std::string lr;
  if (std::isfinite(metrics.lr))
    lr = "lr " + formatNumber(metrics.lr) + "  ";
  std::string exposed;
  if (average.exposed)
    exposed = formatNumber(1e3 * *average.exposed) + " ms for other ranks  ";
  std::fprintf(
      stderr, "\rstep %lld/%lld  loss %s  %s%.0f samples/s  %sETA %s\x1b[K",
      static_cast<long long>(metrics.step), static_cast<long long>(last),
      formatNumber(metrics.loss).c_str(), lr.c_str(), average.samplesPerSecond,
      exposed.c_str(), formatTime(left).c_str());
  std::fflush(stderr);
}

void ProgressLine::clear() {
  if (isShown && shown != Clock::time_point())
    std::fputs("\r\x1b[K", stderr);
  shown = {};
}

//===----------------------------------------------------------------------===//
// The log
//===----------------------------------------------------------------------===//

/// The lines of `path` before the one of step `first`, in order.
static std::string readLinesBefore(const std::string &path, int64_t first) {
  std::ifstream file(path);
  std::string kept, line;
  while (std::getline(file, line)) {
    auto row = nlohmann::json::parse(line, nullptr, false);
    if (!row.is_object() || !row.contains("step") ||
        !row["step"].is_number_integer() || row["step"].get<int64_t>() >= first)
      break;
    kept += line + '\n';
  }
  return kept;
}

Result<MetricsLog> MetricsLog::open(const std::string &folder, int64_t first) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  MetricsLog log;
  log.path = concat(folder, "/metrics.jsonl");
  std::string kept = first > 1 ? readLinesBefore(log.path, first) : "";
  log.file.open(log.path, std::ios::trunc);
  if (!log.file)
    return makeError(Code::Io, "cannot write '", log.path, "'");
  log.file << kept;
  return log;
}

void MetricsLog::write(const StepMetrics &metrics, const Pace &pace,
                       const nlohmann::ordered_json &evaluation) {
  if (path.empty())
    return;
  // What is not finite becomes null.
  nlohmann::ordered_json line = {{"step", metrics.step},
                                 {"loss", metrics.loss},
                                 {"lr", metrics.lr},
                                 {"grad_norm", metrics.gradNorm},
                                 {"loss_scale", metrics.lossScale},
                                 {"skipped", metrics.skipped},
                                 {"samples_per_s", pace.samplesPerSecond}};
  if (pace.exposed)
    line["exposed_communication_s"] = *pace.exposed;
  if (!evaluation.is_null())
    line[format::nameOf(format::EntryKind::eval)] = evaluation;
  file << line.dump() << '\n';
}

Status MetricsLog::close() {
  if (path.empty())
    return Status();
  file.close();
  return file ? Status() : makeError(Code::Io, "cannot write '", path, "'");
}
