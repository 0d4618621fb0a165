#include "tests/tools/tcc-run/doctor/FakeMachine.h"
#include "tools/tcc-run/doctor/DiskSpeed.h"

#include <csignal>
#include <filesystem>
#include <sys/resource.h>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::tests;
using namespace tcc::tools::doctor;

static constexpr uint64_t kGiB = uint64_t(1) << 30;

static std::function<void(FakeMachine &)> space(uint64_t total, uint64_t free) {
  return [=](FakeMachine &fake) {
    fake.machine.calls.space = [=](const std::string &) -> Result<Space> {
      return Space{total, free};
    };
  };
}

static void loseSpace(FakeMachine &fake) {
  fake.machine.calls.space = [](const std::string &path) -> Result<Space> {
    return makeError(Code::Io, "statvfs of '", path, "': gone");
  };
}

static std::function<void(FakeMachine &)> fileSystem(uint64_t magic) {
  return [=](FakeMachine &fake) {
    fake.machine.calls.fileSystem =
        [=](const std::string &) -> Result<uint64_t> { return magic; };
  };
}

static std::function<void(FakeMachine &)> speed(double written) {
  return [=](FakeMachine &fake) {
    fake.machine.calls.diskSpeed =
        [=](const std::string &) -> Result<DiskSpeed> {
      return DiskSpeed{written, 2e9, 32 << 20, false};
    };
  };
}

static void refuse(FakeMachine &fake) {
  fake.machine.calls.diskSpeed = [](const std::string &) -> Result<DiskSpeed> {
    return Status(Code::Io, "cannot write 'folder': Read-only file system");
  };
}

static std::function<void(FakeMachine &)> limit(uint64_t soft, uint64_t hard) {
  return [=](FakeMachine &fake) {
    fake.machine.calls.limit = [=](int) -> Result<Limit> {
      return Limit{soft, hard};
    };
  };
}

static void loseLimit(FakeMachine &fake) {
  fake.machine.calls.limit = [](int) -> Result<Limit> {
    return Status(Code::Io, "getrlimit: Invalid argument");
  };
}

static void haveMuch(FakeMachine &fake) {
  fake.write("/proc/meminfo", "MemAvailable: 500000000 kB\n");
}

static const std::vector<Case> kCases = {
    {"disk space", space(100 * kGiB, 5 * kGiB), State::Warning,
     "5 GiB of 100 GiB free in 'folder'"},
    {"disk space", space(100 * kGiB, 1 << 20), State::Problem, "1 MiB of"},
    {"disk space", loseSpace, State::Unknown, "statvfs of 'folder': gone"},
    {"file system", fileSystem(0x01021994), State::Warning, "tmpfs"},
    {"file system", fileSystem(0x794c7630), State::Warning, "overlay"},
    {"file system", fileSystem(0x6969), State::Warning, "nfs at 'folder'"},
    {"file system", fileSystem(12345), State::Unknown, "of type 12345"},
    {"disk speed", speed(50e6), State::Warning,
     "takes 47.7 MiB/s, gives 1.9 GiB/s (32 MiB, by the page cache)"},
    {"disk speed", speed(5e6), State::Problem, "takes 4.8 MiB/s"},
    {"disk speed", refuse, State::Problem, "Read-only file system"},
    {"dirty pages", haveMuch, State::Warning, "programs stop at 95.4 GiB"},
    {"dirty pages", file("/proc/sys/vm/dirty_bytes", "1000000\n"),
     State::Warning, "programs stop at 976.6 KiB"},
    {"dirty pages", file("/proc/sys/vm/dirty_background_ratio", "30\n"),
     State::Warning, "begins at 17.2 GiB"},
    {"dirty pages", file("/proc/sys/vm/dirty_ratio", "300\n"), State::Unknown,
     "expected a percentage"},
    {"dirty pages", gone("/proc/sys/vm/dirty_ratio"), State::Unknown,
     "No such file"},
    {"open files", limit(1024, 524288), State::Warning, "1024, at most 524288"},
    {"open files", limit(1024, 1024), State::Warning, "1024, at most 1024"},
    {"open files", loseLimit, State::Unknown, "getrlimit"},
};

TEST(DoctorStorage, FindsWhatIsWrong) { expectCases(kCases); }

TEST(DoctorStorage, HasAWrongCaseForEachCheck) {
  std::vector<Case> cases = kCases; // a disk that cannot be measured is wrong
  cases.push_back({"disk speed", nullptr, State::Unknown, ""});
  expectComplete(storageChecks(), cases);
}

TEST(DoctorStorage, RaisesLimitsAsFarAsTheUserMay) {
  FakeMachine fake;
  limit(1024, 8192)(fake);
  EXPECT_EQ(fake.examine("open files").command, "ulimit -n 8192");
  limit(1024, kUnlimited)(fake);
  EXPECT_EQ(fake.examine("open files").command, "ulimit -n 65536");
}

namespace {

/// A folder on the disk, which is empty but for what a test leaves.
class DiskSpeedTest : public testing::Test {
protected:
  DiskSpeedTest() {
    std::string path = testing::TempDir() + "tcc-disk-XXXXXX";
    folder = mkdtemp(path.data());
  }
  ~DiskSpeedTest() override { std::filesystem::remove_all(folder); }
  bool isEmpty() const { return std::filesystem::is_empty(folder); }

  std::filesystem::path folder;
};

} // namespace

TEST_F(DiskSpeedTest, MeasuresAndLeavesNothing) {
  auto speed = measureDisk(folder);
  ASSERT_TRUE(speed.ok()) << speed.takeStatus().message();
  EXPECT_GT(speed->written, 0);
  EXPECT_GT(speed->read, 0);
  EXPECT_GE(speed->bytes, uint64_t(1) << 20);
  EXPECT_LE(speed->bytes, uint64_t(32) << 20);
  EXPECT_TRUE(isEmpty());
}

/// As on a disk that is full after some of it.
TEST_F(DiskSpeedTest, LeavesNothingWhereWritingFails) {
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = {uint64_t(2) << 20, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  auto speed = measureDisk(folder);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(speed.ok());
  std::string message(speed.takeStatus().message());
  EXPECT_NE(message.find("File too large"), std::string::npos) << message;
  EXPECT_TRUE(isEmpty());
}

TEST_F(DiskSpeedTest, NamesTheFolderThatIsNotThere) {
  auto speed = measureDisk(folder / "none");
  ASSERT_FALSE(speed.ok());
  Status status = speed.takeStatus();
  EXPECT_EQ(status.code(), Code::Io);
  EXPECT_NE(status.message().find("none"), std::string::npos);
}
