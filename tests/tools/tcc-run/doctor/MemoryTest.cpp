#include "tests/tools/tcc-run/doctor/FakeMachine.h"

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::tests;
using namespace tcc::tools::doctor;

static constexpr char kHuge[] = "/sys/kernel/mm/transparent_hugepage/enabled";
static constexpr char kDefrag[] = "/sys/kernel/mm/transparent_hugepage/defrag";

static std::function<void(FakeMachine &)> meminfo(int64_t available,
                                                  int64_t swapFree) {
  return file("/proc/meminfo",
              concat("MemTotal: 64000000 kB\nMemAvailable: ", available,
                     " kB\nSwapTotal: 8000000 kB\nSwapFree: ", swapFree,
                     " kB\n"));
}

static std::function<void(FakeMachine &)> setting(std::string name,
                                                  std::string value) {
  return [=](FakeMachine &fake) { fake.environment[name] = value; };
}

/// Both nodes have CPUs.
static void spread(FakeMachine &fake) {
  fake.write("/sys/devices/system/node/node0/cpulist", "0-1\n");
  fake.write("/sys/devices/system/node/node1/cpulist", "2-3\n");
}

static void lockEnvironment(FakeMachine &fake) {
  fake.environment["MALLOC_CHECK_"] = "0";
  fake.environment["LD_PRELOAD"] = "/usr/lib/libjemalloc.so.2";
}

static const std::vector<Case> kCases = {
    {"memory", meminfo(10000000, 8000000), State::Warning,
     "9.5 GiB of 61 GiB available"},
    {"memory", meminfo(1000000, 8000000), State::Problem, "976.6 MiB"},
    {"memory", file("/proc/meminfo", "MemTotal: 64000000 kB\n"), State::Unknown,
     "expected a line 'MemAvailable: N kB'"},
    {"memory", gone("/proc/meminfo"), State::Unknown, "No such file"},
    {"swap", meminfo(60000000, 6000000), State::Warning,
     "1.9 GiB of 7.6 GiB in use"},
    {"swap", meminfo(60000000, 9000000), State::Unknown, "more swap free"},
    {"swap", meminfo(60000000, -1), State::Unknown, "SwapFree"},
    {"memory limit",
     file("/sys/fs/cgroup/pod/memory.stat", "anon 45000000000\n"),
     State::Warning, "46.6 GiB by '/sys/fs/cgroup/pod', 41.9 GiB in use"},
    {"memory limit", file("/sys/fs/cgroup/pod/memory.max", "lots\n"),
     State::Unknown, "'lots'"},
    {"memory limit", file("/proc/self/cgroup", "garbage\n"), State::Unknown,
     "hierarchy:controllers:/group"},
    {"overcommit", file("/proc/sys/vm/overcommit_memory", "2\n"),
     State::Warning, "mode 2"},
    {"overcommit", file("/proc/sys/vm/overcommit_memory", "7\n"),
     State::Unknown, "expected 0, 1 or 2"},
    {"huge pages", file(kHuge, "always madvise [never]\n"), State::Warning,
     "never"},
    {"huge pages", file(kHuge, "always madvise never\n"), State::Unknown,
     "expected one choice in brackets"},
    {"huge pages", file(kHuge, "[always] [madvise] never\n"), State::Unknown,
     "one choice"},
    {"huge pages", gone(kHuge), State::Unknown, "No such file"},
    {"huge page defrag", file(kDefrag, "always [defer] never\n"),
     State::Warning, "defer: there are"},
    {"huge page defrag", file(kDefrag, "[sometimes]\n"), State::Unknown,
     "'sometimes'"},
    {"numa nodes", spread, State::Warning, "CPUs of 2 of 2 nodes"},
    {"numa nodes", gone("/sys/devices/system/node/node1"), State::Unknown,
     "No such file"},
    {"numa nodes", file("/sys/devices/system/node/node0/cpulist", "0--1\n"),
     State::Unknown, "'0--1'"},
    {"numa policy", file("/proc/sys/vm/zone_reclaim_mode", "1\n"),
     State::Warning, "zone_reclaim_mode 1, numa_balancing 0"},
    {"numa policy", file("/proc/sys/kernel/numa_balancing", "1\n"),
     State::Warning, "numa_balancing 1"},
    {"numa policy", gone("/proc/sys/kernel/numa_balancing"), State::Unknown,
     "No such file"},
    {"malloc", setting("MALLOC_PERTURB_", "165"), State::Warning,
     "MALLOC_PERTURB_=165"},
    {"malloc", setting("MALLOC_MMAP_MAX_", "0"), State::Warning,
     "MALLOC_MMAP_MAX_=0"},
    {"malloc", setting("GLIBC_TUNABLES", "glibc.malloc.check=3"),
     State::Warning, "GLIBC_TUNABLES=glibc.malloc.check=3"},
    {"malloc", lockEnvironment, State::Ok, "which changes little"},
};

TEST(DoctorMemory, FindsWhatIsWrong) { expectCases(kCases); }

TEST(DoctorMemory, HasAWrongCaseForEachCheck) {
  std::vector<Case> cases = kCases; // the environment is always known
  cases.push_back({"malloc", nullptr, State::Unknown, ""});
  expectComplete(memoryChecks(), cases);
}

TEST(DoctorMemory, TakesNoSwapForGood) {
  FakeMachine fake;
  fake.write("/proc/meminfo", "SwapTotal: 0 kB\nSwapFree: 0 kB\n");
  EXPECT_EQ(fake.examine("swap").found, "the system has none");
}

/// Its number for no limit is larger than any machine.
TEST(DoctorMemory, ReadsLimitsOfTheFirstVersion) {
  FakeMachine fake;
  fake.write("/proc/self/cgroup", "5:memory:/a/b\n0::/\n");
  const std::string groups = "/sys/fs/cgroup/";
  fake.write(groups + "unified/cgroup.procs", "1\n");
  const std::string memory = groups + "memory/";
  fake.write(memory + "memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(fake.examine("memory limit").found, "no group limits memory");
  fake.write(memory + "a/memory.limit_in_bytes", "2147483648\n");
  fake.write(memory + "a/memory.stat", "cache 5\ntotal_rss 2000000000\n");
  Finding finding = fake.examine("memory limit");
  EXPECT_EQ(finding.state, State::Warning);
  EXPECT_EQ(finding.found,
            "2 GiB by '/sys/fs/cgroup/memory/a', 1.9 GiB in use");
}

TEST(DoctorMemory, LetsOneNodeMoveWhatItWants) {
  FakeMachine fake;
  fake.write("/sys/devices/system/node/online", "0\n");
  fake.write("/proc/sys/kernel/numa_balancing", "1\n");
  EXPECT_EQ(fake.examine("numa policy").state, State::Ok);
}
