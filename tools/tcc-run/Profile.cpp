#include "tools/tcc-run/Profile.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;

uint64_t RunProfile::inLaunches() const {
  uint64_t sum = 0;
  for (const Row &row : rows)
    sum += row.spent.nanoseconds;
  return sum;
}

double RunProfile::shareOf(const ProfileRow &spent) const {
  if (spent.nanoseconds == 0)
    return 0;
  double least = spent.flops / roofline.flops;
  if (roofline.bytes > 0)
    least = std::max(least, spent.bytes / roofline.bytes);
  return least / spent.nanoseconds;
}

Result<RunProfile> tools::profileRuns(Context &context, size_t runs) {
  RunProfile result;
  result.runs = runs;
  Profile spent;
  context.walker().setProfile(&spent);
  auto start = std::chrono::steady_clock::now();
  Status status;
  for (size_t i = 0; i < runs && status.ok(); ++i)
    status = context.run();
  result.nanoseconds =
      std::chrono::nanoseconds(std::chrono::steady_clock::now() - start)
          .count();
  context.walker().setProfile(nullptr);
  if (!status.ok())
    return status;
  for (const auto &[launch, row] : spent)
    result.rows.push_back({launch, row});
  std::sort(result.rows.begin(), result.rows.end(),
            [](const auto &a, const auto &b) {
              return a.spent.nanoseconds > b.spent.nanoseconds;
            });
  uint64_t bytes = 0;
  for (const RunProfile::Row &row : result.rows)
    bytes += row.spent.bytes;
  result.roofline = measureRoofline(context.threads(), bytes / runs);
  return result;
}

static std::string_view kernelOf(const Context &context,
                                 const format::Launch &launch) {
  const auto &kernels = *context.executable().program().kernels();
  return kernels.Get(launch.kernel())->symbol()->string_view();
}

/// The nodes that a launch computes; packages of older compilers name one.
static std::vector<std::string> nodesOf(const format::Launch &launch) {
  std::vector<std::string> names;
  for (size_t i = 0; launch.nodes() && i < launch.nodes()->size(); ++i)
    names.push_back(launch.nodes()->Get(i)->str());
  if (names.empty() && launch.node())
    names.push_back(launch.node()->str());
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
  double all = profile.nanoseconds, inLaunches = profile.inLaunches();
  double perRun = 1e-6 / profile.runs; // ns of all runs in ms of one
  std::printf("%10s %6s %8s %9s %8s %9s  %s\n", "ms/run", "%", "calls/run",
              "GFLOP/s", "GB/s", "roofline", "kernel: nodes");
  for (const auto &[launch, spent] : profile.rows)
    std::printf("%10.4f %6.2f %8.0f %9.2f %8.2f %8.0f%%  %s: %s\n",
                spent.nanoseconds * perRun, 100 * spent.nanoseconds / all,
                double(spent.calls) / profile.runs,
                double(spent.flops) / spent.nanoseconds,
                double(spent.bytes) / spent.nanoseconds,
                100 * profile.shareOf(spent), kernelOf(context, *launch).data(),
                listNodes(*launch).c_str());
  std::printf("%10.4f %6.2f %46s  between kernels\n",
              (all - inLaunches) * perRun, 100 * (1 - inLaunches / all), "");
  std::printf("%10.4f ms a run; the roofline is %.1f GFLOP/s and, of as many "
              "bytes as a run moves, %.1f GB/s\n",
              all * perRun, profile.roofline.flops, profile.roofline.bytes);
}

void tools::describeProfile(const Context &context, const RunProfile &profile,
                            nlohmann::ordered_json &document) {
  document["profile_runs"] = profile.runs;
  document["profile_ms"] = profile.nanoseconds / 1e6;
  document["roofline_gflops"] = profile.roofline.flops;
  document["roofline_gbytes"] = profile.roofline.bytes;
  auto &list = document["profile"] = nlohmann::ordered_json::array();
  for (const auto &[launch, spent] : profile.rows)
    list.push_back({{"node", launch->node() ? launch->node()->str() : ""},
                    {"nodes", nodesOf(*launch)},
                    {"kernel", kernelOf(context, *launch)},
                    {"calls", spent.calls},
                    {"ms", spent.nanoseconds / 1e6},
                    {"flops", spent.flops},
                    {"bytes", spent.bytes},
                    {"roofline", profile.shareOf(spent)}});
}
