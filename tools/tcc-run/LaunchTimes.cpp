#include "tools/tcc-run/LaunchTimes.h"

#include "runtime/package/Commands.h"

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;

namespace {

/// The time of lane 0 that a command of some lane counts to.
struct Account {
  LaneTimes &times;

  /// A phase that a newer compiler knows counts as forward.
  int64_t *operator()(const format::Launch &launch) const {
    bool isKnown = launch.phase() <= format::Phase::MAX;
    return &times.phases[isKnown ? size_t(launch.phase()) : 0];
  }
  int64_t *operator()(const format::Copy &) const { return &times.copies; }
  int64_t *operator()(const Collective auto &) const {
    return &times.communication;
  }
  int64_t *operator()(const auto &) const { return &times.otherLanes; }
};

/// The time of lane 0 that waiting for a command of another lane counts to.
struct WaitAccount : Account {
  using Account::operator();
  int64_t *operator()(const format::Launch &) const {
    return &times.otherLanes;
  }
};

} // namespace

int64_t LaneTimes::sum() const {
  return std::accumulate(std::begin(phases), std::end(phases),
                         copies + uploads + communication + otherLanes);
}

/// What its lane does last before command `record`, which records that.
static const format::Command &findRecorded(const Walker &walker,
                                           uint32_t record) {
  auto lane = walker.command(record).lane();
  uint32_t number = record;
  while (number > 0) {
    const format::Command &command = walker.command(--number);
    if (command.lane() == lane &&
        command.action_type() != format::Action::RecordEvent &&
        command.action_type() != format::Action::WaitEvent)
      return command;
  }
  return walker.command(record);
}

int64_t &LaunchTimes::findAccount(EntrySums &sums, const TraceEvent &event) {
  if (event.cause == TraceEvent::kNone)
    return *visitCommand(sums.walker->command(event.command), Account{times});
  auto [recorded, isNew] = sums.recorded.try_emplace(event.cause, nullptr);
  if (isNew)
    recorded->second = &findRecorded(*sums.walker, event.cause);
  return *visitCommand(*recorded->second, WaitAccount{{times}});
}

/// The lane waits for inputs of its next run once the one before has ended.
void LaunchTimes::addUpload(const TraceEvent &event) {
  uploaded += event.end - event.begin;
  times.uploads +=
      std::max<int64_t>(event.end - std::max(event.begin, lastEnd), 0);
}

void LaunchTimes::add(const TracedRun &run) {
  EntrySums &sums = entries[&run.context->entry()];
  sums.walker = &run.context->walker();
  program = &run.context->executable().program();
  lostEvents += run.reading.lost;
  for (const TraceEvent &event : run.reading.events) {
    if (event.lane == TraceEvent::kUploads) {
      addUpload(event);
      continue;
    }
    if (event.command >= sums.commands.size())
      sums.commands.resize(event.command + 1);
    Sum &sum = sums.commands[event.command];
    ++sum.calls;
    sum.nanoseconds += event.end - event.begin;
    sum.flops += std::max<int64_t>(event.flops, 0);
    sum.bytes += std::max<int64_t>(event.bytes, 0);
    if (event.lane != 0)
      continue;
    findAccount(sums, event) += event.end - event.begin;
    lastEnd = event.end;
  }
}

/// What the cost model expects of the launch with as much work on average,
/// which is what it expects in all where each has as much.
static double predict(const format::Program &program, const LaunchTime &time) {
  const format::Machine *machine = program.machine();
  if (!machine)
    return 0;
  const format::Kernel &kernel = *program.kernels()->Get(time.launch->kernel());
  auto arithmetic = uint32_t(kernel.arithmetic());
  const auto &rates = *machine->flops_per_us();
  double rate = arithmetic < rates.size() ? rates.Get(arithmetic) : 0;
  double calls = double(time.calls);
  double memory = double(time.bytes) / machine->bytes_per_us();
  double compute = time.flops > 0 ? double(time.flops) / rate : 0;
  double microseconds =
      calls * machine->launch_us() + std::max(memory, compute);
  return std::isfinite(microseconds) ? 1e3 * microseconds : 0;
}

std::vector<LaunchTime> LaunchTimes::list() const {
  std::vector<LaunchTime> launches;
  for (const auto &[entry, sums] : entries)
    for (uint32_t number = 0; number < sums.commands.size(); ++number) {
      const Sum &sum = sums.commands[number];
      const format::Launch *launch =
          sums.walker->command(number).action_as_Launch();
      if (!launch || sum.calls == 0)
        continue;
      LaunchTime &time = launches.emplace_back(
          launch, sum.calls, sum.nanoseconds, sum.flops, sum.bytes);
      time.predicted = predict(*program, time);
    }
  std::ranges::sort(launches, std::ranges::greater(), &LaunchTime::nanoseconds);
  return launches;
}
