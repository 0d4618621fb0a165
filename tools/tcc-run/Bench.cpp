#include "tools/tcc-run/DataTimes.h"
#include "tools/tcc-run/Json.h"
#include "tools/tcc-run/Profile.h"
#include "tools/tcc-run/Session.h"
#include "tools/tcc-run/TrainSession.h"
#include "tools/tcc-run/trace/TraceFile.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <numeric>

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;
using Clock = std::chrono::steady_clock;

/// Fewer runs than these say nothing about percentiles.
static constexpr size_t kFewestRuns = 10;
static constexpr size_t kMaxProfiledRuns = 100;

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

/// The peak of this program: getrusage counts what ran before exec, too.
static uint64_t peakResidentBytes() {
  std::ifstream status("/proc/self/status");
  std::string field;
  uint64_t kibibytes = 0;
  while (status >> field)
    if (field == "VmHWM:" && status >> kibibytes)
      break;
  return kibibytes * 1024;
}

/// As `tcc --json` does.
static nlohmann::ordered_json describePlanned(const PlannedMemory &planned) {
  return {{"constants", planned.constants}, {"states", planned.states},
          {"arena", planned.arena},         {"workers", planned.workers},
          {"workspace", planned.workspace}, {"faults", planned.faults},
          {"passage", planned.passage},     {"total", planned.total()}};
}

static nlohmann::ordered_json describeTimes(const std::vector<double> &times,
                                            const Context &context) {
  PlannedMemory planned = context.planned();
  return {{"schema_version", 1},
          {"entry", format::nameOf(context.entry())},
          {"min_ms", times.front()},
          {"med_ms", percentile(times, 0.5)},
          {"p90_ms", percentile(times, 0.9)},
          {"p99_ms", percentile(times, 0.99)},
          {"n", times.size()},
          {"peak_bytes", peakResidentBytes()},
          {"plan_bytes", planned.total()},
          {"memory_bytes", describePlanned(planned)}};
}

static void printTimes(const std::vector<double> &times,
                       const Context &context) {
  std::printf("%s: min %.3f ms, median %.3f ms, p90 %.3f ms, p99 %.3f ms "
              "(%zu runs, %d threads)\n",
              format::nameOf(context.entry()).c_str(), times.front(),
              percentile(times, 0.5), percentile(times, 0.9),
              percentile(times, 0.99), times.size(), context.threads());
}

/// What the runtime itself takes, after the tables of a profile.
static void printBetween(const Profile &profile) {
  double all = profile.nanoseconds;
  double between = std::max(all - profile.inLaunches(), 0.0);
  std::printf("%.4f ms the run, of them %.4f (%.2f %%) between kernels\n",
              all * 1e-6, between * 1e-6, 100 * between / all);
}

/// What `percentile` gives of seconds, in milliseconds.
static double milliseconds(const DataTimes &times, double fraction) {
  return 1e3 * percentile(times.seconds, fraction);
}

static Status benchData(const BenchOptions &options) {
  auto session = openTraining(options.running,
                              {.data = {}, .init = {}, .checkpointDir = {}},
                              /*communicator=*/nullptr);
  if (!session.ok())
    return session.takeStatus();
  MeasuredTime time = {options.warmupMs / 1e3, options.seconds, kFewestRuns,
                       size_t(options.iterations)};
  auto times = timeOnData(**session, options.data, time);
  if (!times.ok())
    return times.takeStatus();
  double all =
      std::accumulate(times->seconds.begin(), times->seconds.end(), 0.0);
  double rate = double(times->samples) / all, waited = times->waited / all;
  if (options.running.json)
    printJson({{"schema_version", 1},
               {"entry", "update"},
               {"min_ms", milliseconds(*times, 0)},
               {"med_ms", milliseconds(*times, 0.5)},
               {"p90_ms", milliseconds(*times, 0.9)},
               {"p99_ms", milliseconds(*times, 0.99)},
               {"n", times->seconds.size()},
               {"samples_per_s", rate},
               {"data_wait_share", waited},
               {"peak_bytes", peakResidentBytes()},
               {"memory_bytes", (*session)->planned().total()}});
  else if (!options.running.quiet)
    std::printf("update: min %.3f ms, median %.3f ms, p90 %.3f ms, p99 %.3f ms "
                "(%zu updates), %.0f samples/s, %.0f %% of the time waiting "
                "for data\n",
                milliseconds(*times, 0), milliseconds(*times, 0.5),
                milliseconds(*times, 0.9), milliseconds(*times, 0.99),
                times->seconds.size(), rate, 100 * waited);
  return Status();
}

int tools::benchCommand(const BenchOptions &options) {
  if (!options.data.empty())
    return report(benchData(options));
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
  auto document = describeTimes(*times, context);
  if (!options.running.json && !options.running.quiet)
    printTimes(*times, context);
  Result<Profile> profile = Profile();
  if (options.profile)
    profile = profileRuns(context, std::min(times->size(), kMaxProfiledRuns));
  if (!profile.ok())
    return report(profile.takeStatus());
  if (!options.traceFile.empty())
    if (Status status = writeTrace(context, options.traceFile); !status.ok())
      return report(status);

  if (options.running.json) {
    if (options.profile)
      describeProfile(context, *profile, document);
    printJson(document);
    return 0;
  }
  if (options.profile) {
    printProfile(context, *profile);
    printBetween(*profile);
  }
  return 0;
}
