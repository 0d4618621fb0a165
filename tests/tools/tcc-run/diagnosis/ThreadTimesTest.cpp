// When a thread ran: by the scheduler of this machine, and by files of others.

#include "tools/tcc-run/diagnosis/ThreadTimes.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

using namespace tcc;
using namespace tcc::tools;

namespace {

/// A folder with a file of /proc for the thread.
class FakeProc {
public:
  explicit FakeProc(const std::string &text)
      : root(testing::TempDir() + "thread-times") {
    std::filesystem::create_directories(root + "/proc/thread-self");
    std::ofstream(root + "/proc/thread-self/schedstat") << text;
  }
  ~FakeProc() { std::filesystem::remove_all(root); }

  const std::string root;
};

TEST(ThreadTimes, AreNanoseconds) {
  FakeProc proc("1500000000 250000000 7\n");
  auto times = readThreadTimes(proc.root);
  ASSERT_TRUE(times.ok());
  EXPECT_DOUBLE_EQ(times->ran, 1.5);
  EXPECT_DOUBLE_EQ(times->delayed, 0.25);
}

TEST(ThreadTimes, OtherTextsAreErrors) {
  for (const char *text : {"", "\n", "cpu 12", "12"}) {
    FakeProc proc(text);
    EXPECT_FALSE(readThreadTimes(proc.root).ok()) << text;
  }
  EXPECT_EQ(readThreadTimes("/no/such/root").takeStatus().code(),
            runtime::Code::Io);
}

TEST(ThreadTimes, AThreadThatSleepsDoesNotRun) {
  auto before = readThreadTimes();
  if (!before.ok())
    GTEST_SKIP() << before.takeStatus().message();
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  auto after = readThreadTimes();
  ASSERT_TRUE(after.ok());
  ThreadTimes times = *after - *before;
  EXPECT_GE(times.passed, 0.03);
  EXPECT_LE(times.ran + times.delayed, times.passed);
  EXPECT_LT(times.ran, times.passed / 2);
}

} // namespace
