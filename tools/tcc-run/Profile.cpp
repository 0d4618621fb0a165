#include "tools/tcc-run/Profile.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <unordered_map>

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;

uint64_t RunProfile::inLaunches() const {
  uint64_t sum = 0;
  for (const Row &row : rows)
    sum += row.nanoseconds;
  return sum;
}

double RunProfile::shareOf(const Row &row) const {
  if (row.nanoseconds == 0)
    return 0;
  double least = row.flops / roofline.flops;
  if (roofline.bytes > 0)
    least = std::max(least, row.bytes / roofline.bytes);
  return least / row.nanoseconds;
}

/// The launches of a run, most expensive first.
static std::vector<RunProfile::Row> listRows(const Walker &walker,
                                             const Trace::Reading &reading) {
  std::unordered_map<const format::Launch *, RunProfile::Row> rows;
  for (const TraceEvent &event : reading.events) {
    const format::Launch *launch =
        walker.command(event.command).action_as_Launch();
    if (!launch)
      continue;
    RunProfile::Row &row = rows[launch];
    row.launch = launch;
    row.nanoseconds += event.end - event.begin;
    ++row.calls;
    row.flops += std::max<int64_t>(event.flops, 0);
    row.bytes += std::max<int64_t>(event.bytes, 0);
  }
  std::vector<RunProfile::Row> sorted;
  for (const auto &[launch, row] : rows)
    sorted.push_back(row);
  std::sort(sorted.begin(), sorted.end(), [](const auto &a, const auto &b) {
    return a.nanoseconds > b.nanoseconds;
  });
  return sorted;
}

/// A run that is traced, once the device replays what it can. `lost` is how
/// many events the trace had no room for.
static Status profileRun(Context &context, Trace &trace, RunProfile &profile,
                         uint64_t &lost) {
  auto start = std::chrono::steady_clock::now();
  if (Status status = context.run(); !status.ok())
    return status;
  auto spent = std::chrono::steady_clock::now() - start;
  profile.nanoseconds = std::chrono::nanoseconds(spent).count();
  Trace::Reading reading = trace.take();
  profile.rows = listRows(context.walker(), reading);
  lost = reading.lost;
  return Status();
}

/// Returns how many events a run lost: it was the last one then.
static Result<uint64_t> traceRuns(Context &context, size_t capacity,
                                  std::span<RunProfile> profiles) {
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

Result<RunProfile> tools::profileRuns(Context &context, size_t runs) {
  std::vector<RunProfile> profiles(runs);
  size_t capacity = Trace::kCapacity;
  Result<uint64_t> lost = traceRuns(context, capacity, profiles);
  while (lost.ok() && *lost > 0) // it is as long as the run is then
    lost = traceRuns(context, capacity += *lost, profiles);
  if (!lost.ok())
    return lost.takeStatus();
  auto median = profiles.begin() + runs / 2;
  std::nth_element(profiles.begin(), median, profiles.end(),
                   [](const RunProfile &a, const RunProfile &b) {
                     return a.nanoseconds < b.nanoseconds;
                   });
  uint64_t bytes = 0;
  for (const RunProfile::Row &row : median->rows)
    bytes += row.bytes;
  median->roofline = measureRoofline(context.threads(), bytes);
  return std::move(*median);
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

void tools::printProfile(const Context &context, const RunProfile &profile) {
  double all = profile.nanoseconds;
  double between = std::max(all - profile.inLaunches(), 0.0);
  std::printf("%10s %6s %6s %9s %8s %9s  %s\n", "ms", "%", "calls", "GFLOP/s",
              "GB/s", "roofline", "kernel: nodes");
  for (const RunProfile::Row &row : profile.rows)
    std::printf("%10.4f %6.2f %6llu %9.2f %8.2f %8.0f%%  %s: %s\n",
                row.nanoseconds * 1e-6, 100 * row.nanoseconds / all,
                static_cast<unsigned long long>(row.calls),
                double(row.flops) / row.nanoseconds,
                double(row.bytes) / row.nanoseconds, 100 * profile.shareOf(row),
                kernelOf(context, *row.launch).data(),
                listNodes(*row.launch).c_str());
  std::printf("%10.4f %6.2f %44s  between kernels\n", between * 1e-6,
              100 * between / all, "");
  std::printf("%10.4f ms the run; the roofline is %.1f GFLOP/s and, of as many "
              "bytes as a run moves, %.1f GB/s\n",
              all * 1e-6, profile.roofline.flops, profile.roofline.bytes);
}

void tools::describeProfile(const Context &context, const RunProfile &profile,
                            nlohmann::ordered_json &document) {
  document["profile_ms"] = profile.nanoseconds / 1e6;
  document["roofline_gflops"] = profile.roofline.flops;
  document["roofline_gbytes"] = profile.roofline.bytes;
  auto &list = document["profile"] = nlohmann::ordered_json::array();
  for (const RunProfile::Row &row : profile.rows)
    list.push_back(
        {{"node", row.launch->node() ? row.launch->node()->str() : ""},
         {"nodes", nodesOf(*row.launch)},
         {"kernel", kernelOf(context, *row.launch)},
         {"calls", row.calls},
         {"ms", row.nanoseconds / 1e6},
         {"flops", row.flops},
         {"bytes", row.bytes},
         {"roofline", profile.shareOf(row)}});
}
