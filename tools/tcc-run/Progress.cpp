#include "tools/tcc-run/Progress.h"

#include <algorithm>
#include <cmath>
#include <sys/ioctl.h>
#include <unistd.h>
#include <vector>

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

namespace {

/// What a line says of one thing.
struct Figure {
  int spare; ///< the larger, the sooner a line goes without it
  std::string text;
};

} // namespace

/// "1:02:03" or "2:03".
static std::string formatTime(double seconds) {
  constexpr long long kMinute = 60, kHour = 3600;
  auto whole = std::llround(seconds);
  char text[48];
  if (whole >= kHour)
    std::snprintf(text, sizeof(text), "%lld:%02lld:%02lld", whole / kHour,
                  whole % kHour / kMinute, whole % kMinute);
  else
    std::snprintf(text, sizeof(text), "%lld:%02lld", whole / kMinute,
                  whole % kMinute);
  return text;
}

static std::string formatNumber(double value, int digits) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.*g", digits, value);
  return text;
}

/// Three digits, or all before the point.
static std::string formatRate(double value) {
  constexpr double kWhole = 100;
  return value < kWhole ? formatNumber(value, 3) : concat(std::llround(value));
}

static std::string formatBytes(uint64_t bytes) {
  constexpr double kMiB = 1 << 20, kGiB = 1 << 30;
  auto size = double(bytes);
  return size < kGiB ? formatRate(size / kMiB) + " MiB"
                     : formatRate(size / kGiB) + " GiB";
}

/// In the order that a line has them.
static std::vector<Figure> listFigures(const Progress &progress) {
  constexpr double kWorthAWord = 0.01;
  const StepMetrics &metrics = progress.metrics;
  const Pace &pace = progress.average;
  std::vector<Figure> figures = {
      {0, concat("step ", metrics.step, "/", progress.last)},
      {1, concat("loss ", formatNumber(metrics.loss, 4))}};
  auto add = [&](int spare, auto... parts) {
    figures.push_back({spare, concat(parts...)});
  };
  if (std::isfinite(metrics.lr))
    add(8, "lr ", formatNumber(metrics.lr, 4));
  if (pace.samplesPerSecond > 0)
    add(pace.tokensPerSecond ? 6 : 4, formatRate(pace.samplesPerSecond),
        " samples/s");
  if (pace.tokensPerSecond)
    add(4, formatRate(*pace.tokensPerSecond), " tokens/s");
  if (pace.mfu)
    add(5, "MFU ", formatNumber(100 * *pace.mfu, 3), " %");
  if (pace.waitingShare() >= kWorthAWord)
    add(3, "stall ", std::llround(100 * pace.waitingShare()), " %");
  if (pace.exposed)
    add(7, formatNumber(1e3 * *pace.exposed, 3), " ms for other ranks");
  if (progress.bytes)
    add(9, formatBytes(*progress.bytes));
  add(2, "ETA ", formatTime(progress.left));
  return figures;
}

std::string tools::describe(const Progress &progress, size_t width) {
  constexpr std::string_view kGap = "  ";
  std::vector<Figure> figures = listFigures(progress);
  auto join = [&] {
    std::string line;
    for (const Figure &figure : figures)
      line += concat(line.empty() ? "" : kGap, figure.text);
    return line;
  };
  std::string line = join();
  while (line.size() > width && figures.size() > 1) {
    figures.erase(std::ranges::max_element(figures, {}, &Figure::spare));
    line = join();
  }
  return line.substr(0, width);
}

//===----------------------------------------------------------------------===//
// Times and places
//===----------------------------------------------------------------------===//

void PlainTimes::note(double elapsed) {
  next = elapsed + std::clamp(kGrowth * elapsed, kFirst, kLongest);
}

static ProgressLine::Style chooseStyle(bool isQuiet) {
  using enum ProgressLine::Style;
  if (isQuiet)
    return None;
  return isatty(STDERR_FILENO) ? Terminal : Plain;
}

ProgressLine::ProgressLine(int64_t first, int64_t last, bool isQuiet)
    : ProgressLine(first, last, chooseStyle(isQuiet), stderr, Clock::now()) {}

static double secondsOf(ProgressLine::Clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

/// Columns of a terminal that a line may take: one in the last of them may
/// wrap.
static size_t getWidth(std::FILE *file) {
  constexpr size_t kUsual = 80; // of a terminal that does not say
  winsize size = {};
  bool isKnown = ioctl(fileno(file), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return (isKnown ? size.ws_col : kUsual) - 1;
}

bool ProgressLine::isDue(Clock::time_point now) const {
  constexpr std::chrono::milliseconds kInterval(200);
  if (style == Style::Terminal)
    return !shown || now - *shown >= kInterval;
  return style == Style::Plain && times.isDue(secondsOf(now - start));
}

void ProgressLine::show(const StepMetrics &metrics, const Pace &average,
                        std::optional<uint64_t> bytes, Clock::time_point now) {
  double elapsed = secondsOf(now - start);
  double left = elapsed / double(std::max<int64_t>(metrics.step - first, 1)) *
                double(last - metrics.step);
  Progress progress = {last, metrics, average, bytes, left};
  if (style == Style::Plain) {
    std::fprintf(file, "%s\n", describe(progress).c_str());
    times.note(elapsed);
  } else {
    std::fprintf(file, "\r%s\x1b[K",
                 describe(progress, getWidth(file)).c_str());
    shown = now;
  }
  std::fflush(file);
}

void ProgressLine::clear() {
  if (shown)
    std::fputs("\r\x1b[K", file);
  shown.reset();
}
