#include "tools/tcc-run/doctor/Check.h"
#include "tools/tcc-run/doctor/Machine.h"
#include "tools/tcc-run/doctor/Text.h"

#include <charconv>
#include <numeric>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::tools;
using namespace tcc::tools::doctor;

/// Percent of the time of all CPUs since the system started that a host gave to
/// others.
static Result<double> readSteal(const Machine &machine) {
  auto text = machine.read("/proc/stat");
  if (!text.ok())
    return text.takeStatus();
  // user, nice, system, idle, iowait, irq, softirq, steal; user has the guests.
  constexpr size_t kKinds = 8, kSteal = 7;
  auto line = findLine(*text, "cpu ");
  auto times = line ? parseIntegers(*line, kKinds) : std::nullopt;
  if (!times)
    return unexpected("/proc/stat", *text, "cpu and at least eight numbers");
  double all = std::accumulate(times->begin(), times->begin() + kKinds, 0.0);
  return all > 0 ? 100 * static_cast<double>((*times)[kSteal]) / all : 0;
}

static Finding examineVirtual(const Machine &machine) {
  auto info = machine.read("/proc/cpuinfo");
  if (!info.ok())
    return unknown(info.takeStatus());
  auto flags = findLine(*info, "flags");
  if (!flags)
    return unknown("'/proc/cpuinfo' has no line of flags");
  auto steal = readSteal(machine);
  if (!steal.ok())
    return unknown(steal.takeStatus());
  if (!hasWord(*flags, "hypervisor"))
    return ok("no");
  std::string found =
      concat("yes; its host gave ", namePercent(*steal), " of its time away");
  constexpr double kSome = 2, kMuch = 10; // percent
  const char *advice = "use a host, or a kind of machine, whose CPUs are not "
                       "shared; times measured here vary";
  if (*steal > kMuch)
    return problem(found, advice, "vmstat 1 5");
  return *steal > kSome ? warning(found, advice, "vmstat 1 5") : ok(found);
}

/// "load 1.2 on 8 CPUs", and the load.
static Result<std::pair<std::string, double>> readLoad(const Machine &machine,
                                                       int cpus) {
  auto text = machine.read("/proc/loadavg");
  if (!text.ok())
    return text.takeStatus();
  double load = 0;
  auto [end, error] =
      std::from_chars(text->data(), text->data() + text->size(), load);
  if (error != std::errc() || end == text->data() + text->size() ||
      *end != ' ' || !(load >= 0))
    return unexpected("/proc/loadavg", *text, "a number and more");
  return std::pair(concat("load ", nameNumber(load), " on ", cpus,
                          cpus == 1 ? " CPU" : " CPUs"),
                   load);
}

/// The load is that of all CPUs, whichever of them this process may use.
static Finding examineLoad(const Machine &machine) {
  auto online = machine.readList("/sys/devices/system/cpu/online");
  if (!online.ok())
    return unknown(online.takeStatus());
  const int cpus = static_cast<int>(online->size());
  auto load = readLoad(machine, cpus);
  if (!load.ok())
    return unknown(load.takeStatus());
  std::string found = load->first;
  double waiting = 0; // percent; kernels may be built without
  constexpr char kPressure[] = "/proc/pressure/cpu";
  if (auto text = machine.read(kPressure); text.ok()) {
    auto percent = findPressure(*text);
    if (!percent)
      return unknown(unexpected(kPressure, *text, "some avg10=NUMBER"));
    waiting = *percent;
    found += concat(", some thread waits for a CPU ", namePercent(waiting),
                    " of the time");
  }
  const char *advice = "end other work, or wait for it, before anything is "
                       "timed";
  const char *look = "ps -eo pcpu,pid,user,args --sort=-pcpu | head";
  constexpr double kBusy = 0.25, kMuchWaiting = 10; // of a CPU; percent
  if (load->second > cpus)
    return problem(found, advice, look);
  if (load->second > kBusy * cpus || waiting > kMuchWaiting)
    return warning(found, advice, look);
  return ok(found);
}

static Finding examineClockSource(const Machine &machine) {
  const std::string folder = "/sys/devices/system/clocksource/clocksource0/";
  const std::string path = folder + "current_clocksource";
  auto source = machine.read(path);
  if (!source.ok())
    return unknown(source.takeStatus());
  if (source->empty() || source->find_first_of(" \n") != std::string::npos)
    return unknown(unexpected(path, *source, "the name of a clock"));
  for (const char *fast : {"tsc", "kvm-clock", "hyperv_clocksource_tsc_page"})
    if (*source == fast)
      return ok(*source);
  auto others = machine.read(folder + "available_clocksource");
  bool hasTsc = others.ok() && hasWord(*others, "tsc");
  return warning(concat(*source, ", which is read by calls of the kernel"),
                 hasTsc ? "use the CPU's own counter"
                        : "see why the kernel does not trust the CPU's counter",
                 hasTsc ? machine.writeTo(path, "tsc")
                        : machine.asRoot("dmesg | grep -i tsc"));
}

static Finding examineKernel(const Machine &machine) {
  constexpr char kPath[] = "/proc/sys/kernel/osrelease";
  auto release = machine.read(kPath);
  if (!release.ok())
    return unknown(release.takeStatus());
  int major = 0, minor = 0;
  const char *last = release->data() + release->size();
  auto first = std::from_chars(release->data(), last, major);
  if (first.ec != std::errc() || first.ptr == last || *first.ptr != '.' ||
      std::from_chars(first.ptr + 1, last, minor).ec != std::errc())
    return unknown(unexpected(kPath, *release, "MAJOR.MINOR and more"));
  std::pair version(major, minor);
  if (version < std::pair(5, 14))
    return warning(concat("Linux ", *release),
                   "use 5.14 or later, which has pages ready before they are "
                   "written; AMX takes 5.16");
  return ok(concat("Linux ", *release));
}

static Finding examinePerf(const Machine &machine) {
  constexpr char kPath[] = "/proc/sys/kernel/perf_event_paranoid";
  auto level = machine.readInteger(kPath);
  if (!level.ok())
    return unknown(level.takeStatus());
  std::string found = concat("perf_event_paranoid ", *level);
  constexpr int kOwnProcesses = 2; // a user may profile their own code
  if (*level <= kOwnProcesses)
    return ok(found);
  if (machine.calls.isRoot())
    return ok(concat(found, ", which is not for root"));
  return warning(concat(found, ": only root may use perf"),
                 "let users profile what they run, as with tcc-run --symbols",
                 machine.asRoot("sysctl -w kernel.perf_event_paranoid=2"));
}

static constexpr Check kChecks[] = {
    {"virtual machine", "a host that is shared makes all ranks wait for one",
     examineVirtual},
    {"other load", "threads of a kernel wait for the one that has no CPU",
     examineLoad},
    {"clock source", "profiles and traces read the clock at each kernel",
     examineClockSource},
    {"kernel", "older ones lack what the runtime asks of memory",
     examineKernel},
    {"perf", "tells where the time of kernels goes", examinePerf},
};

std::span<const Check> doctor::systemChecks() { return kChecks; }
