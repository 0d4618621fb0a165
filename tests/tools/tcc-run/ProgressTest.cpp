// Lines of terminals of any width, and times of lines elsewhere.

#include "tools/tcc-run/Progress.h"

#include <gmock/gmock.h>

#include <fcntl.h>
#include <memory>
#include <sys/ioctl.h>
#include <unistd.h>

using namespace tcc;
using namespace tcc::tools;
using Clock = ProgressLine::Clock;
using Style = ProgressLine::Style;

/// One that has all figures.
static Progress makeProgress() {
  return {.last = 5000,
          .metrics = {.step = 120, .loss = 2.3125, .lr = 0.001},
          .average = {.samplesPerSecond = 812.4,
                      .tokensPerSecond = 831488.2,
                      .exposed = 0.0041,
                      .stall = 0.002,
                      .dataWait = 0.001,
                      .seconds = 0.098,
                      .mfu = 0.4317},
          .bytes = uint64_t(3) << 29,
          .left = 3723.4};
}

TEST(Progress, SaysAllFigures) {
  EXPECT_EQ(describe(makeProgress()),
            "step 120/5000  loss 2.312  lr 0.001  812 samples/s  "
            "831488 tokens/s  MFU 43.2 %  stall 3 %  4.1 ms for other ranks  "
            "1.5 GiB  ETA 1:02:03");
}

TEST(Progress, LeavesOutWhatIsNotKnown) {
  Progress progress = {.last = 2, .metrics = {.step = 1}, .left = 61};
  EXPECT_EQ(describe(progress), "step 1/2  loss nan  ETA 1:01");
  progress.average = {
      .samplesPerSecond = 0.4321, .dataWait = 0.009, .seconds = 1};
  progress.metrics.loss = 0.5;
  progress.bytes = 12 << 20;
  EXPECT_EQ(describe(progress),
            "step 1/2  loss 0.5  0.432 samples/s  12 MiB  ETA 1:01");
  progress.average.dataWait = 0.01;
  EXPECT_THAT(describe(progress), testing::HasSubstr("  stall 1 %  "));
}

/// The least important figure goes first; none is cut while others can go.
TEST(Progress, FitsAnyWidth) {
  Progress progress = makeProgress();
  std::string whole = describe(progress);
  size_t before = 0;
  for (size_t width = 0; width <= whole.size(); ++width) {
    std::string line = describe(progress, width);
    EXPECT_LE(line.size(), width);
    EXPECT_GE(line.size(), before); // more room, no less text
    before = line.size();
    if (width >= 13)
      EXPECT_THAT(line, testing::StartsWith("step 120/5000"));
  }
  EXPECT_EQ(describe(progress, whole.size()), whole);
  EXPECT_EQ(describe(progress, whole.size() - 1),
            "step 120/5000  loss 2.312  lr 0.001  812 samples/s  "
            "831488 tokens/s  MFU 43.2 %  stall 3 %  4.1 ms for other ranks  "
            "ETA 1:02:03");
  EXPECT_EQ(describe(progress, 79),
            "step 120/5000  loss 2.312  831488 tokens/s  MFU 43.2 %  "
            "stall 3 %  ETA 1:02:03");
  progress.average.tokensPerSecond.reset();
  EXPECT_EQ(describe(progress, 65),
            "step 120/5000  loss 2.312  812 samples/s  stall 3 %  ETA 1:02:03");
  progress = makeProgress();
  EXPECT_EQ(describe(progress, 40), "step 120/5000  loss 2.312  ETA 1:02:03");
  EXPECT_EQ(describe(progress, 5), "step ");
}

TEST(PlainTimes, GrowByATenth) {
  PlainTimes times;
  std::vector<double> written;
  for (double elapsed = 0; elapsed < 8 * 3600; elapsed += 0.5)
    if (times.isDue(elapsed)) {
      written.push_back(elapsed);
      times.note(elapsed);
    }
  ASSERT_GT(written.size(), 11u);
  for (int i = 0; i < 10; ++i) // 10 s at least
    EXPECT_EQ(written[i], 10. * (i + 1));
  EXPECT_EQ(written[10], 110);
  EXPECT_EQ(written[11], 121);
  for (size_t i = 1; i < written.size(); ++i)
    EXPECT_LE(written[i] - written[i - 1], 600);
  EXPECT_EQ(written.back() - written[written.size() - 2], 600);
  EXPECT_EQ(written.size(), 90u); // as docs/sessions.md says
}

namespace {

/// A file, or a terminal of that width, and what was written to it.
class Screen {
public:
  explicit Screen(unsigned short columns) {
    controller = posix_openpt(O_RDWR | O_NOCTTY);
    EXPECT_GE(controller, 0);
    EXPECT_EQ(grantpt(controller), 0);
    EXPECT_EQ(unlockpt(controller), 0);
    int terminal = open(ptsname(controller), O_RDWR | O_NOCTTY);
    EXPECT_GE(terminal, 0);
    winsize size = {
        .ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    EXPECT_EQ(ioctl(terminal, TIOCSWINSZ, &size), 0);
    file = fdopen(terminal, "w");
  }
  ~Screen() {
    std::fclose(file);
    close(controller);
  }

  std::FILE *get() const { return file; }
  std::string read() const {
    std::fflush(file);
    char text[4096];
    ssize_t size = ::read(controller, text, sizeof(text));
    return {text, size_t(std::max<ssize_t>(size, 0))};
  }

private:
  int controller;
  std::FILE *file;
};

constexpr Clock::time_point kStart{std::chrono::hours(1)};

Clock::time_point at(double seconds) {
  return kStart + std::chrono::round<Clock::duration>(
                      std::chrono::duration<double>(seconds));
}

} // namespace

TEST(ProgressLine, WritesATerminalsLineAgain) {
  Screen screen(44);
  {
    ProgressLine line(0, 5000, Style::Terminal, screen.get(), kStart);
    EXPECT_TRUE(line.isDue(at(0)));
    Progress progress = makeProgress();
    line.show(progress.metrics, progress.average, progress.bytes, at(12));
    EXPECT_EQ(screen.read(), "\rstep 120/5000  loss 2.312  ETA 8:08\x1b[K");
    EXPECT_FALSE(line.isDue(at(12.1)));
    EXPECT_TRUE(line.isDue(at(12.2)));
    line.clear();
    EXPECT_EQ(screen.read(), "\r\x1b[K");
    EXPECT_TRUE(line.isDue(at(12.1)));
    line.show(progress.metrics, progress.average, progress.bytes, at(12.1));
    EXPECT_THAT(screen.read(), testing::HasSubstr("step 120/5000"));
  }
  EXPECT_EQ(screen.read(), "\r\x1b[K");
}

TEST(ProgressLine, TakesATerminalThatSaysNoWidthAs80) {
  Screen screen(0);
  ProgressLine line(0, 5000, Style::Terminal, screen.get(), kStart);
  Progress progress = makeProgress();
  line.show(progress.metrics, progress.average, progress.bytes, at(12));
  std::string written = screen.read();
  EXPECT_LE(written.size(), 79 + strlen("\r\x1b[K"));
  EXPECT_GT(written.size(), 60u);
}

TEST(ProgressLine, WritesPlainLinesElsewhere) {
  char *text = nullptr;
  size_t size = 0;
  std::FILE *file = open_memstream(&text, &size);
  {
    ProgressLine line(100, 5000, Style::Plain, file, kStart);
    EXPECT_FALSE(line.isDue(at(9.9)));
    EXPECT_TRUE(line.isDue(at(10)));
    Progress progress = makeProgress();
    line.show(progress.metrics, progress.average, progress.bytes, at(10));
    EXPECT_FALSE(line.isDue(at(19.9)));
    EXPECT_TRUE(line.isDue(at(20)));
    line.clear(); // nothing: lines stay
    // 20 of 4900 updates took 10 s.
    progress.left = 2440;
    EXPECT_EQ(std::string(text, size), describe(progress) + "\n");
  }
  std::fclose(file);
  std::free(text);
}

TEST(ProgressLine, IsNeverDueWhereNobodyWants) {
  ProgressLine line(0, 10, Style::None, stderr, kStart);
  EXPECT_FALSE(line.isDue(at(1e6)));
}
