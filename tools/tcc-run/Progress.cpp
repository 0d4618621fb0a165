#include "tools/tcc-run/Progress.h"

#include <cstdio>
#include <unistd.h>

using namespace tcc::tools;
using namespace tcc::runtime;

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

void PaceSum::add(const Pace &pace, double time) {
  ++count;
  seconds += time;
  samples += pace.samplesPerSecond * time;
  dataWait += pace.dataWait;
  if (exposed && pace.exposed)
    *exposed += *pace.exposed;
  else
    exposed = std::nullopt;
}

Pace PaceSum::average() const {
  if (count == 0)
    return {};
  Pace average = {.samplesPerSecond = samples / seconds,
                  .dataWait = dataWait / double(count)};
  if (exposed)
    average.exposed = *exposed / double(count);
  return average;
}

std::string PaceSum::describeWaits() const {
  std::string text;
  auto add = [&](double part, const char *of) {
    if (long long share = count ? std::llround(100 * part / seconds) : 0)
      text += concat(text.empty() ? "" : ", ", share,
                     " % of the time waiting for ", of);
  };
  add(dataWait, "data");
  add(exposed.value_or(0), "other ranks");
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
