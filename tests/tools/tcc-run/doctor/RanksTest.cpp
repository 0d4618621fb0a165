#include "tests/tools/tcc-run/doctor/FakeMachine.h"

#include <sys/resource.h>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::tests;
using namespace tcc::tools::doctor;

static constexpr uint64_t kMiB = uint64_t(1) << 20;

static std::function<void(FakeMachine &)> space(uint64_t total, uint64_t free) {
  return [=](FakeMachine &fake) {
    fake.machine.calls.space = [=](const std::string &path) -> Result<Space> {
      EXPECT_EQ(path, "/dev/shm");
      return Space{total, free};
    };
  };
}

static void loseSpace(FakeMachine &fake) {
  fake.machine.calls.space = [](const std::string &path) -> Result<Space> {
    return makeError(Code::Io, "statvfs of '", path, "': gone");
  };
}

static std::function<void(FakeMachine &)> limit(int resource, uint64_t soft) {
  return [=](FakeMachine &fake) {
    fake.machine.calls.limit = [=](int asked) -> Result<Limit> {
      EXPECT_EQ(asked, resource);
      return Limit{soft, soft};
    };
  };
}

static void loseLimit(FakeMachine &fake) {
  fake.machine.calls.limit = [](int) -> Result<Limit> {
    return Status(Code::Io, "getrlimit: Invalid argument");
  };
}

static std::function<void(FakeMachine &)> clock(Result<ClockState> (*read)()) {
  return [=](FakeMachine &fake) { fake.machine.calls.clock = read; };
}

static const std::vector<Case> kCases = {
    {"shared memory", space(64 * kMiB, 64 * kMiB), State::Warning,
     "64 MiB of 64 MiB free in /dev/shm"},
    {"shared memory", space(8192 * kMiB, 3 * kMiB), State::Warning,
     "3 MiB of 8 GiB"},
    {"shared memory", loseSpace, State::Unknown, "gone"},
    {"socket buffers", file("/proc/sys/net/ipv4/tcp_rmem", "4096 4096 65536\n"),
     State::Warning, "receives into 64 KiB"},
    {"socket buffers", file("/proc/sys/net/core/wmem_max", "65536\n"),
     State::Warning, "wmem_max 64 KiB"},
    {"socket buffers", file("/proc/sys/net/ipv4/tcp_wmem", "4096 4096\n"),
     State::Unknown, "expected three whole numbers"},
    {"socket buffers", gone("/proc/sys/net/core/rmem_max"), State::Unknown,
     "No such file"},
    {"locked memory", limit(RLIMIT_MEMLOCK, 8 * kMiB), State::Problem,
     "8 MiB, with mlx5_0"},
    {"locked memory", loseLimit, State::Unknown, "getrlimit"},
    {"threads allowed", limit(RLIMIT_NPROC, 100), State::Warning,
     "100 threads by the user's limit"},
    {"threads allowed", file("/sys/fs/cgroup/pod/job/pids.max", "64\n"),
     State::Warning, "64 threads by '/sys/fs/cgroup/pod/job'"},
    {"threads allowed", file("/sys/fs/cgroup/pod/job/pids.max", "few\n"),
     State::Unknown, "'few'"},
    {"threads allowed", gone("/proc/sys/kernel/threads-max"), State::Unknown,
     "No such file"},
    {"system time",
     clock([]() -> Result<ClockState> { return ClockState{false, 16000000}; }),
     State::Warning, "not synchronized"},
    {"system time",
     clock([]() -> Result<ClockState> { return ClockState{true, 5000000}; }),
     State::Warning, "within 5000.0 ms"},
    {"system time", clock([]() -> Result<ClockState> {
       return Status(Code::Io, "adjtimex: Operation not permitted");
     }),
     State::Unknown, "not permitted"},
};

TEST(DoctorRanks, FindsWhatIsWrong) { expectCases(kCases); }

TEST(DoctorRanks, HasAWrongCaseForEachCheck) {
  expectComplete(rankChecks(), kCases);
}

TEST(DoctorRanks, NeedsLockedMemoryForInfiniBandAlone) {
  FakeMachine fake;
  fake.remove("/sys/class/infiniband");
  limit(RLIMIT_MEMLOCK, 8 * kMiB)(fake);
  EXPECT_EQ(fake.examine("locked memory").state, State::Ok);
}

TEST(DoctorRanks, KnowsThatRootHasNoLimitOfThreads) {
  FakeMachine fake;
  limit(RLIMIT_NPROC, 100)(fake);
  fake.machine.calls.isRoot = [] { return true; };
  EXPECT_EQ(fake.examine("threads allowed").found,
            "500000 threads by the system");
}
