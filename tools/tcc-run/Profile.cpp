#include "tools/tcc-run/Profile.h"

#include "runtime/package/SizeExpr.h"

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

namespace {

/// Times the launches of each place in the program.
class Profiler : public LaunchObserver {
public:
  explicit Profiler(std::span<const int64_t> slots) : slots(slots) {}

  Status before(const format::Launch &, std::span<void *const>) override {
    start = std::chrono::steady_clock::now();
    return Status();
  }

  Status after(const format::Launch &launch, std::span<void *const>) override {
    auto spent = std::chrono::steady_clock::now() - start;
    RunProfile::Row &row = rows[&launch];
    row.launch = &launch;
    row.nanoseconds += std::chrono::nanoseconds(spent).count();
    ++row.calls;
    int64_t amount = 0;
    if (launch.flops() && evaluate(*launch.flops(), slots.data(), amount))
      row.flops += amount;
    if (launch.bytes() && evaluate(*launch.bytes(), slots.data(), amount))
      row.bytes += amount;
    return Status();
  }

  /// Those since the last call.
  std::vector<RunProfile::Row> takeRows() {
    std::vector<RunProfile::Row> sorted;
    for (const auto &[launch, row] : rows)
      sorted.push_back(row);
    rows.clear();
    std::sort(sorted.begin(), sorted.end(), [](const auto &a, const auto &b) {
      return a.nanoseconds > b.nanoseconds;
    });
    return sorted;
  }

private:
  std::span<const int64_t> slots;
  std::chrono::steady_clock::time_point start;
  std::unordered_map<const format::Launch *, RunProfile::Row> rows;
};

} // namespace

Result<RunProfile> tools::profileRuns(Context &context, size_t runs) {
  std::vector<RunProfile> profiles(runs);
  Profiler profiler(context.walker().slots());
  context.walker().setObserver(&profiler);
  Status status;
  for (size_t i = 0; i < runs && status.ok(); ++i) {
    auto start = std::chrono::steady_clock::now();
    status = context.run();
    auto spent = std::chrono::steady_clock::now() - start;
    profiles[i].nanoseconds = std::chrono::nanoseconds(spent).count();
    profiles[i].rows = profiler.takeRows();
  }
  context.walker().setObserver(nullptr);
  if (!status.ok())
    return status;
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
  double all = profile.nanoseconds, between = all - profile.inLaunches();
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
