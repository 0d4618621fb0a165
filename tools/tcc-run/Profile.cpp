#include "tools/tcc-run/Profile.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <tuple>

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;

double Profile::inLaunches() const {
  int64_t sum = 0;
  for (const LaunchTime &launch : launches)
    sum += launch.nanoseconds;
  return double(sum) / double(runs);
}

double Profile::shareOf(const LaunchTime &launch) const {
  if (launch.nanoseconds == 0 || roofline.flops <= 0)
    return 0;
  double least = double(launch.flops) / roofline.flops;
  if (roofline.bytes > 0)
    least = std::max(least, double(launch.bytes) / roofline.bytes);
  return least / double(launch.nanoseconds);
}

bool Profile::isBoundByMemory(const LaunchTime &launch) const {
  return roofline.bytes > 0 && double(launch.bytes) * roofline.flops >
                                   double(launch.flops) * roofline.bytes;
}

void Profile::measureRoofline(const Context &context) {
  if (!context.executable().device().isHost())
    return;
  int64_t bytes = 0;
  for (const LaunchTime &launch : launches)
    bytes += launch.bytes;
  roofline = tools::measureRoofline(context.threads(), uint64_t(bytes) / runs);
}

//===----------------------------------------------------------------------===//
// Runs
//===----------------------------------------------------------------------===//

/// A run that is traced, once the device replays what it can. `lost` is how
/// many events the trace had no room for.
static Status profileRun(Context &context, Trace &trace, Profile &profile,
                         uint64_t &lost) {
  auto start = std::chrono::steady_clock::now();
  if (Status status = context.run(); !status.ok())
    return status;
  auto spent = std::chrono::steady_clock::now() - start;
  profile.nanoseconds = double(std::chrono::nanoseconds(spent).count());
  LaunchTimes times;
  times.add({&context, trace.take()});
  profile.launches = times.list();
  lost = times.lost();
  return Status();
}

/// Returns how many events a run lost: it was the last one then.
static Result<uint64_t> traceRuns(Context &context, size_t capacity,
                                  std::span<Profile> profiles) {
  Stream &stream = context.walker().getStream();
  Trace trace(stream.laneCount(), capacity);
  uint64_t lost = 0;
  Status status = stream.trace(&trace);
  for (size_t i = 0; i < profiles.size() && status.ok() && lost == 0; ++i)
    status = profileRun(context, trace, profiles[i], lost);
  if (Status ended = stream.trace(nullptr); status.ok())
    status = std::move(ended);
  if (!status.ok())
    return status;
  return lost;
}

Result<Profile> tools::profileRuns(Context &context, size_t runs) {
  std::vector<Profile> profiles(runs);
  size_t capacity = Trace::kCapacity;
  Result<uint64_t> lost = traceRuns(context, capacity, profiles);
  while (lost.ok() && *lost > 0) // it is as long as the run is then
    lost = traceRuns(context, capacity += *lost, profiles);
  if (!lost.ok())
    return lost.takeStatus();
  auto median = profiles.begin() + runs / 2;
  std::ranges::nth_element(profiles, median, {}, &Profile::nanoseconds);
  median->measureRoofline(context);
  return std::move(*median);
}

//===----------------------------------------------------------------------===//
// Launches with something in common
//===----------------------------------------------------------------------===//

namespace {

/// Sums over launches that have a name in common.
struct Group {
  std::string name;
  LaunchTime sum;
};

} // namespace

static std::string textOf(const flatbuffers::String *text) {
  return text ? text->str() : "";
}

/// The groups, most expensive first.
static std::vector<Group>
group(const Profile &profile,
      const std::function<std::string(const format::Launch &)> &nameOf) {
  std::map<std::string, LaunchTime> sums;
  for (const LaunchTime &launch : profile.launches) {
    LaunchTime &sum = sums[nameOf(*launch.launch)];
    sum.calls += launch.calls;
    sum.nanoseconds += launch.nanoseconds;
    sum.flops += launch.flops;
    sum.bytes += launch.bytes;
    sum.predicted += launch.predicted;
  }
  std::vector<Group> groups;
  for (const auto &[name, sum] : sums)
    groups.push_back({name, sum});
  std::ranges::sort(groups, [](const Group &a, const Group &b) {
    return std::tie(b.sum.nanoseconds, a.name) <
           std::tie(a.sum.nanoseconds, b.name);
  });
  return groups;
}

/// " (backward)": what is not of the forward part says so.
static std::string describePhase(const format::Launch &launch) {
  if (launch.phase() == format::Phase::forward)
    return "";
  return concat(" (", format::nameOf(launch.phase()), ")");
}

/// What is of no node of the model is the compiler's: "train_step".
static std::string describeOp(const format::Launch &launch) {
  std::string op = textOf(launch.op());
  return (op.empty() ? textOf(launch.node()) : op) + describePhase(launch);
}

static std::string describeModule(const format::Launch &launch) {
  std::string module = textOf(launch.module_());
  return (module.empty() ? "-" : module) + describePhase(launch);
}

static std::string_view kernelOf(const Context &context,
                                 const format::Launch &launch) {
  const auto &kernels = *context.executable().program().kernels();
  return kernels.Get(launch.kernel())->symbol()->string_view();
}

/// The nodes that a launch computes.
static std::vector<std::string> nodesOf(const format::Launch &launch) {
  std::vector<std::string> names;
  for (size_t i = 0; launch.nodes() && i < launch.nodes()->size(); ++i)
    names.push_back(launch.nodes()->Get(i)->str());
  return names;
}

static std::string listNodes(const format::Launch &launch) {
  constexpr size_t kMaxListed = 4;
  std::string text;
  std::vector<std::string> names = nodesOf(launch);
  for (size_t i = 0; i < std::min(names.size(), kMaxListed); ++i)
    text += (i ? ", " : "") + names[i];
  if (names.size() > kMaxListed)
    text += concat(" and ", names.size() - kMaxListed, " more");
  return text;
}

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

static bool isPredicted(const Profile &profile) {
  return std::ranges::any_of(profile.launches, [](const LaunchTime &launch) {
    return launch.predicted > 0;
  });
}

static void printHead(const Profile &profile, const char *of) {
  std::printf("\n%10s", "ms");
  if (isPredicted(profile))
    std::printf(" %10s", "predicted");
  std::printf(" %6s %8s %9s %8s", "%", "calls", "GFLOP/s", "GB/s");
  if (profile.roofline.flops > 0)
    std::printf(" %8s", "roofline");
  std::printf("  %s\n", of);
}

static void printRow(const Profile &profile, const LaunchTime &row,
                     const std::string &name) {
  double runs = double(profile.runs), time = double(row.nanoseconds);
  std::printf("%10.4f", time / runs * 1e-6);
  if (isPredicted(profile))
    std::printf(" %10.4f", row.predicted / runs * 1e-6);
  std::printf(" %6.2f %8.4g %9.2f %8.2f",
              100 * time / runs / profile.nanoseconds, double(row.calls) / runs,
              double(row.flops) / time, double(row.bytes) / time);
  if (profile.roofline.flops > 0)
    std::printf(" %7.0f%%", 100 * profile.shareOf(row));
  std::printf("  %s\n", name.c_str());
}

/// The first rows of a table, and how many there are more.
static void printRows(const Profile &profile, size_t count,
                      const std::function<void(size_t)> &printOne) {
  constexpr size_t kMaxRows = 30;
  for (size_t i = 0; i < std::min(count, kMaxRows); ++i)
    printOne(i);
  if (count > kMaxRows)
    std::printf("%10s %zu more: --json has all launches\n", "",
                count - kMaxRows);
}

static void printGroups(const Profile &profile, const char *of,
                        const std::vector<Group> &groups) {
  printHead(profile, of);
  printRows(profile, groups.size(), [&](size_t i) {
    printRow(profile, groups[i].sum, groups[i].name);
  });
}

static bool namesModules(const Profile &profile) {
  return std::ranges::any_of(profile.launches, [](const LaunchTime &launch) {
    return launch.launch->module_() != nullptr;
  });
}

void tools::printProfile(const Context &context, const Profile &profile) {
  printGroups(profile, "operator", group(profile, describeOp));
  if (namesModules(profile))
    printGroups(profile, "module", group(profile, describeModule));
  printHead(profile, "kernel: nodes");
  printRows(profile, profile.launches.size(), [&](size_t i) {
    const format::Launch &launch = *profile.launches[i].launch;
    printRow(profile, profile.launches[i],
             concat(kernelOf(context, launch), describePhase(launch), ": ",
                    listNodes(launch)));
  });
  if (profile.roofline.flops > 0)
    std::printf("\nThe roofline is %.1f GFLOP/s and, of as many bytes as a run "
                "moves, %.1f GB/s\n",
                profile.roofline.flops, profile.roofline.bytes);
}

void tools::describeProfile(const Context &context, const Profile &profile,
                            nlohmann::ordered_json &document) {
  double runs = double(profile.runs);
  document["profile_ms"] = profile.nanoseconds / 1e6;
  document["roofline_gflops"] = profile.roofline.flops;
  document["roofline_gbytes"] = profile.roofline.bytes;
  auto &list = document["profile"] = nlohmann::ordered_json::array();
  for (const LaunchTime &row : profile.launches)
    list.push_back({{"node", textOf(row.launch->node())},
                    {"nodes", nodesOf(*row.launch)},
                    {"op", textOf(row.launch->op())},
                    {"module", textOf(row.launch->module_())},
                    {"phase", format::nameOf(row.launch->phase())},
                    {"kernel", kernelOf(context, *row.launch)},
                    {"calls", double(row.calls) / runs},
                    {"ms", double(row.nanoseconds) / runs / 1e6},
                    {"predicted_ms", row.predicted / runs / 1e6},
                    {"flops", double(row.flops) / runs},
                    {"bytes", double(row.bytes) / runs},
                    {"roofline", profile.shareOf(row)}});
}
