#include "tests/tools/tcc-run/doctor/FakeMachine.h"

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::tests;
using namespace tcc::tools::doctor;

static constexpr char kGovernor[] =
    "/sys/devices/system/cpu/cpu2/cpufreq/scaling_governor";
static constexpr char kTurbo[] =
    "/sys/devices/system/cpu/intel_pstate/no_turbo";
static constexpr char kSiblings[] =
    "/sys/devices/system/cpu/cpu1/topology/thread_siblings_list";

static void useOneCpu(FakeMachine &fake) {
  fake.machine.calls.affinity = []() -> Result<std::vector<int>> {
    return std::vector{2};
  };
}

static void shareCores(FakeMachine &fake) {
  for (int cpu = 0; cpu < 4; ++cpu)
    fake.write(concat("/sys/devices/system/cpu/cpu", cpu,
                      "/topology/thread_siblings_list"),
               concat(cpu % 2, ",", cpu % 2 + 2, "\n"));
}

static void loseDriver(FakeMachine &fake) {
  fake.write(kGovernor, "powersave\n");
  fake.write("/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver",
             "acpi-cpufreq\n");
}

static void limitCpus(FakeMachine &fake) {
  fake.write("/sys/fs/cgroup/pod/cpu.max", "150000 100000\n");
}

static void throttle(FakeMachine &fake) {
  fake.write("/sys/fs/cgroup/pod/cpu.max", "400000 100000\n");
  fake.write("/sys/fs/cgroup/pod/cpu.stat",
             "usage_usec 5\nnr_periods 200\nnr_throttled 30\n");
}

static void useAmdBoost(FakeMachine &fake) {
  fake.remove("/sys/devices/system/cpu/intel_pstate");
  fake.write("/sys/devices/system/cpu/cpufreq/boost", "0\n");
}

static const std::vector<Case> kCpuCases = {
    {"cpu vectors",
     [](FakeMachine &fake) { fake.machine.calls.cpuLevel = [] { return 2; }; },
     State::Problem, "no AVX2 (x86-64-v2)"},
    {"cpu vectors", [](FakeMachine &fake) { fake.cpuFeatures.clear(); },
     State::Warning, "AMX, which the system does not let"},
    {"cpu vectors", gone("/proc/cpuinfo"), State::Unknown, "No such file"},
    {"cpu vectors", file("/proc/cpuinfo", "processor: 0\n"), State::Unknown,
     "no line of flags"},
    {"cpu governor", file(kGovernor, "powersave\n"), State::Warning,
     "1 of 4 CPUs are governed by powersave"},
    {"cpu governor", loseDriver, State::Problem,
     "1 of 4 CPUs stay at their lowest"},
    {"cpu governor", file(kGovernor, "schedutil\n"), State::Warning,
     "schedutil"},
    {"cpu governor", file(kGovernor, "fast please\n"), State::Unknown,
     "'fast please'"},
    {"cpu governor", gone("/sys/devices/system/cpu/cpu0/cpufreq"),
     State::Unknown, "virtual machine"},
    {"cpu boost", file(kTurbo, "1\n"), State::Warning, "turned off"},
    {"cpu boost", useAmdBoost, State::Warning, "turned off"},
    {"cpu boost", file(kTurbo, "2\n"), State::Unknown, "expected 0 or 1"},
    {"cpu boost", gone("/sys/devices/system/cpu/intel_pstate"), State::Unknown,
     "does not say"},
    {"cpu quota", limitCpus, State::Warning,
     "2 of 4 CPUs, by '/sys/fs/cgroup/pod'"},
    {"cpu quota", throttle, State::Problem, "waited in 15.0 %"},
    {"cpu quota", gone("/proc/self/cgroup"), State::Unknown, "No such file"},
    {"cpu affinity", useOneCpu, State::Warning, "1 of 4 CPUs"},
    {"cpu affinity", file("/sys/devices/system/cpu/online", "3-0\n"),
     State::Unknown, "'3-0'"},
    {"threads per core", shareCores, State::Warning, "4 CPUs on 2 cores"},
    {"threads per core", file(kSiblings, "a\n"), State::Unknown, "'a'"},
    {"threads per core", gone(kSiblings), State::Unknown, "No such file"},
};

TEST(DoctorCpu, FindsWhatIsWrong) { expectCases(kCpuCases); }

TEST(DoctorCpu, HasAWrongCaseForEachCheck) {
  expectComplete(cpuChecks(), kCpuCases);
}

/// A mask that one thread of each core is in uses all cores.
TEST(DoctorCpu, TakesOneThreadOfEachCoreForACore) {
  FakeMachine fake;
  shareCores(fake);
  fake.machine.calls.affinity = []() -> Result<std::vector<int>> {
    return std::vector{0, 1};
  };
  Finding finding = fake.examine("threads per core");
  EXPECT_EQ(finding.state, State::Ok);
  EXPECT_EQ(finding.found, "2 CPUs on 2 cores");
}

TEST(DoctorCpu, ReadsQuotasOfTheFirstVersion) {
  FakeMachine fake;
  fake.write("/proc/self/cgroup", "4:cpu,cpuacct:/a\n");
  fake.write("/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "100000\n");
  fake.write("/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
  Finding finding = fake.examine("cpu quota");
  EXPECT_EQ(finding.state, State::Warning);
  EXPECT_EQ(finding.found, "1 of 4 CPUs, by '/sys/fs/cgroup/cpu/a'");
  EXPECT_EQ(finding.command, "docker run --cpuset-cpus=0-0 IMAGE");
}

TEST(DoctorCpu, NamesTheCommandThatRootNeedsNoHelpFor) {
  FakeMachine fake;
  fake.write(kTurbo, "1\n");
  EXPECT_EQ(fake.examine("cpu boost").command,
            concat("echo 0 | sudo tee ", kTurbo));
  fake.machine.calls.isRoot = [] { return true; };
  EXPECT_EQ(fake.examine("cpu boost").command, concat("echo 0 | tee ", kTurbo));
}

static constexpr char kClock[] =
    "/sys/devices/system/clocksource/clocksource0/current_clocksource";

static const std::vector<Case> kSystemCases = {
    {"virtual machine", file("/proc/stat", "cpu  600 0 100 250 0 0 0 50 0 0\n"),
     State::Warning, "gave 5.0 % of its time away"},
    {"virtual machine", file("/proc/stat", "cpu  600 0 0 200 0 0 0 200\n"),
     State::Problem, "gave 20.0 %"},
    {"virtual machine", file("/proc/stat", "cpu  600 0 0\n"), State::Unknown,
     "expected cpu and at least eight"},
    {"virtual machine", gone("/proc/stat"), State::Unknown, "No such file"},
    {"other load", file("/proc/loadavg", "2.50 0 0 1/2 3\n"), State::Warning,
     "load 2.5 on 4 CPUs"},
    {"other load", file("/proc/loadavg", "9.00 0 0 1/2 3\n"), State::Problem,
     "load 9.0 on 4 CPUs"},
    {"other load", file("/proc/pressure/cpu", "some avg10=40.00 avg60=0\n"),
     State::Warning, "waits for a CPU 40.0 %"},
    {"other load", file("/proc/pressure/cpu", "some avg10=lots\n"),
     State::Unknown, "avg10=lots"},
    {"other load", file("/proc/loadavg", "low\n"), State::Unknown, "'low'"},
    {"clock source", file(kClock, "hpet\n"), State::Warning, "hpet"},
    {"clock source", file(kClock, "\n"), State::Unknown, "name of a clock"},
    {"kernel", file("/proc/sys/kernel/osrelease", "5.10.0-30-amd64\n"),
     State::Warning, "Linux 5.10.0-30-amd64"},
    {"kernel", file("/proc/sys/kernel/osrelease", "six\n"), State::Unknown,
     "'six'"},
    {"perf", file("/proc/sys/kernel/perf_event_paranoid", "3\n"),
     State::Warning, "only root"},
    {"perf", file("/proc/sys/kernel/perf_event_paranoid", "3x\n"),
     State::Unknown, "'3x'"},
    {"perf", gone("/proc/sys/kernel/perf_event_paranoid"), State::Unknown,
     "No such file"},
};

TEST(DoctorSystem, FindsWhatIsWrong) { expectCases(kSystemCases); }

TEST(DoctorSystem, HasAWrongCaseForEachCheck) {
  expectComplete(systemChecks(), kSystemCases);
}

TEST(DoctorSystem, DoesWithoutPressureFiles) {
  FakeMachine fake;
  fake.remove("/proc/pressure");
  EXPECT_EQ(fake.examine("other load").found, "load 0.1 on 4 CPUs");
}

TEST(DoctorSystem, LetsRootUsePerf) {
  FakeMachine fake;
  fake.write("/proc/sys/kernel/perf_event_paranoid", "4\n");
  fake.machine.calls.isRoot = [] { return true; };
  EXPECT_EQ(fake.examine("perf").state, State::Ok);
}
