#include "tools/tcc-run/DataTimes.h"

#include "tools/tcc-run/Batches.h"
#include "tools/tcc-run/Plans.h"
#include "tools/tcc-run/TrainSession.h"
#include "tools/tcc-run/Updates.h"

#include <algorithm>
#include <chrono>
#include <limits>

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;
using Clock = std::chrono::steady_clock;

static double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

static Result<Batches> openBatches(const TrainingSession &session,
                                   const std::string &data) {
  auto plans = Plans::open(session.executable().program());
  if (!plans.ok())
    return plans.takeStatus();
  if (Status status = plans->data.use(data); !status.ok())
    return status;
  return Batches::open(session, format::EntryKind::accumulate_step, plans->data,
                       session.read(format::StepField::seed),
                       /*shuffles=*/true);
}

/// The next one is begun meanwhile, whatever becomes of it.
static Status update(Updates &updates) {
  return updates.make(std::numeric_limits<int64_t>::max());
}

Result<DataTimes> tools::timeOnData(TrainingSession &session,
                                    const std::string &data,
                                    const MeasuredTime &time) {
  auto batches = openBatches(session, data);
  if (!batches.ok())
    return batches.takeStatus();
  Result<int64_t> accumulation =
      getAccumulation(session, batches->loader().order().batchSize());
  if (!accumulation.ok())
    return accumulation.takeStatus();
  Updates updates(session, *batches, *accumulation);
  Clock::time_point start = Clock::now();
  do // at least once, so that all memory is touched
    if (Status status = update(updates); !status.ok())
      return status;
  while (secondsSince(start) < time.warmupSeconds);
  (void)batches->takeWait();
  DataTimes times;
  auto isDone = [&] {
    size_t count = times.seconds.size();
    return time.updates
               ? count >= time.updates
               : count >= time.fewest && secondsSince(start) >= time.seconds;
  };
  for (start = Clock::now(); !isDone();) {
    Clock::time_point begin = Clock::now();
    if (Status status = update(updates); !status.ok())
      return status;
    times.seconds.push_back(secondsSince(begin));
    times.samples += updates.lastSampleCount();
  }
  times.waited = batches->takeWait();
  std::ranges::sort(times.seconds);
  return times;
}
