#include "tools/tcc-run/Session.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <sys/resource.h>

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;
using Clock = std::chrono::steady_clock;

/// Fewer runs than these say nothing about percentiles.
static constexpr size_t kFewestRuns = 10;

static double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Milliseconds of each run, ascending.
static Result<std::vector<double>> measure(Context &context,
                                           const BenchOptions &options) {
  Clock::time_point start = Clock::now();
  do { // at least once, so that all memory is touched
    if (Status status = context.run(); !status.ok())
      return status;
  } while (secondsSince(start) * 1e3 < options.warmupMs);
  std::vector<double> times;
  start = Clock::now();
  auto isDone = [&] {
    if (options.iterations > 0)
      return times.size() >= static_cast<size_t>(options.iterations);
    return times.size() >= kFewestRuns &&
           secondsSince(start) >= options.seconds;
  };
  while (!isDone()) {
    Clock::time_point begin = Clock::now();
    if (Status status = context.run(); !status.ok())
      return status;
    times.push_back(secondsSince(begin) * 1e3);
  }
  std::sort(times.begin(), times.end());
  return times;
}

/// The smallest time that a fraction of the runs does not exceed.
static double percentile(const std::vector<double> &times, double fraction) {
  size_t rank = static_cast<size_t>(fraction * times.size() + 0.999999);
  return times[std::clamp<size_t>(rank, 1, times.size()) - 1];
}

static uint64_t peakResidentBytes() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

/// A table of the launches, most expensive first.
static void printProfile(const Context &context, const Profile &profile) {
  std::vector<std::pair<const format::Launch *, ProfileRow>> rows(
      profile.begin(), profile.end());
  std::sort(rows.begin(), rows.end(), [](const auto &a, const auto &b) {
    return a.second.nanoseconds > b.second.nanoseconds;
  });
  double total = 0;
  for (const auto &[launch, row] : rows)
    total += row.nanoseconds;
  std::printf("%8s %6s %7s %9s %8s  %s\n", "us/call", "%", "calls", "GFLOP/s",
              "GB/s", "node");
  for (const auto &[launch, row] : rows) {
    const char *node = launch->node() ? launch->node()->c_str() : "";
    const auto *kernel =
        context.executable().program().kernels()->Get(launch->kernel());
    std::printf("%8.1f %6.2f %7llu %9.2f %8.2f  %s [%s]\n",
                row.nanoseconds / 1e3 / row.calls,
                total > 0 ? 100 * row.nanoseconds / total : 0,
                static_cast<unsigned long long>(row.calls),
                static_cast<double>(row.flops) / row.nanoseconds,
                static_cast<double>(row.bytes) / row.nanoseconds, node,
                kernel->symbol()->c_str());
  }
}

static void printJson(const std::vector<double> &times,
                      const Context &context) {
  nlohmann::ordered_json document = {{"schema_version", 1},
                                     {"min_ms", times.front()},
                                     {"med_ms", percentile(times, 0.5)},
                                     {"p90_ms", percentile(times, 0.9)},
                                     {"p99_ms", percentile(times, 0.99)},
                                     {"n", times.size()},
                                     {"peak_bytes", peakResidentBytes()},
                                     {"plan_bytes", context.plannedBytes()}};
  std::cout << document.dump() << '\n';
}

int tools::benchCommand(const BenchOptions &options) {
  InputOptions inputs = options.inputs;
  if (inputs.randomSeed.empty() && inputs.inputs.empty() &&
      inputs.inputsDir.empty())
    inputs.randomSeed = "0";
  Result<Session> session = openSession(options.running, inputs);
  if (!session.ok())
    return report(session.takeStatus());
  Context &context = *session->context;
  auto times = measure(context, options);
  if (!times.ok())
    return report(times.takeStatus());
  if (options.running.json)
    printJson(*times, context);
  else
    std::printf("min %.3f ms, median %.3f ms, p90 %.3f ms, p99 %.3f ms "
                "(%zu runs, %d threads)\n",
                times->front(), percentile(*times, 0.5),
                percentile(*times, 0.9), percentile(*times, 0.99),
                times->size(), context.threads());
  if (!options.profile)
    return 0;
  Profile profile;
  context.walker().setProfile(&profile);
  size_t runs = std::min<size_t>(times->size(), 100);
  for (size_t i = 0; i < runs; ++i)
    if (Status status = context.run(); !status.ok())
      return report(status);
  printProfile(context, profile);
  return 0;
}
