#include "tools/tcc-run/UpdateTimes.h"

#include "tools/tcc-run/DataTimes.h"
#include "tools/tcc-run/Session.h"
#include "tools/tcc-run/TrainSession.h"

#include <algorithm>
#include <chrono>

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;
using Clock = std::chrono::steady_clock;

/// At least so many updates, and so long.
static constexpr size_t kFewestUpdates = 5;
static constexpr double kLeastSeconds = 1;

/// Name, type and shape of each parameter, in a line.
static std::string listParameters(const Variables &variables) {
  std::string lines;
  for (size_t i = 0; i < variables.size(); ++i) {
    const format::Variable &variable = variables.describe(i);
    if (variable.kind() == format::VariableKind::parameter)
      lines += variable.name()->str() + ' ' +
               format::EnumNameDType(variable.dtype()) +
               formatShape(variables.shape(i)) + '\n';
  }
  return lines;
}

/// Random data may overflow: the update takes as long.
static Status ignoreNumerics(TrainingSession &session, Status status) {
  if (status.code() != Code::Numerics)
    return status;
  session.clearFault();
  return Status();
}

static Status update(TrainingSession &session, int64_t batches,
                     std::span<const TensorView> batch) {
  if (batches == 1 && session.exactBatches() == 0)
    return ignoreNumerics(session, session.step(batch));
  for (int64_t i = 0; i < batches; ++i)
    if (Status status = session.accumulate(batch); !status.ok())
      return status;
  return ignoreNumerics(session, session.apply());
}

static Result<double> timeUpdate(TrainingSession &session, int64_t batches,
                                 std::span<const TensorView> batch) {
  // The first one touches all memory.
  if (Status status = update(session, batches, batch); !status.ok())
    return status;
  std::vector<double> times;
  for (double total = 0;
       times.size() < kFewestUpdates || total < kLeastSeconds;) {
    Clock::time_point start = Clock::now();
    if (Status status = update(session, batches, batch); !status.ok())
      return status;
    std::chrono::duration<double> elapsed = Clock::now() - start;
    times.push_back(elapsed.count());
    total += times.back();
  }
  auto middle = times.begin() + times.size() / 2;
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

/// Updates of one package; its parameters must be `parameters`, if not empty.
static Result<UpdateTime> timePackage(const RunningOptions &running,
                                      const std::string &data,
                                      std::string &parameters) {
  auto executable = loadExecutable(running);
  if (!executable.ok())
    return executable.takeStatus();
  const format::Entry *entry =
      (*executable)->findEntry(format::EntryKind::accumulate_step);
  if (!entry)
    return makeError(Code::Usage, "'", running.package,
                     "' does not train: batch sizes are of training packages");
  auto session = TrainingSession::create(std::move(*executable),
                                         {.threads = running.threads});
  if (!session.ok())
    return session.takeStatus();
  std::string own = listParameters((*session)->variables());
  if (!parameters.empty() && own != parameters)
    return makeError(Code::Usage, "'", running.package,
                     "' has other parameters than the first package");
  parameters = std::move(own);
  if (!data.empty()) {
    auto times =
        timeOnData(**session, data, {0, kLeastSeconds, kFewestUpdates});
    if (!times.ok())
      return times.takeStatus();
    size_t count = times->seconds.size();
    return UpdateTime{running.package, times->samples / int64_t(count),
                      times->seconds[count / 2]};
  }
  auto batch = RandomBatch::make(*entry);
  if (!batch.ok())
    return batch.takeStatus();
  Result<int64_t> batches = getAccumulation(**session, batch->size());
  if (!batches.ok())
    return batches.takeStatus();
  auto seconds = timeUpdate(**session, *batches, batch->views());
  if (!seconds.ok())
    return seconds.takeStatus();
  return UpdateTime{running.package, *batches * batch->size(), *seconds};
}

Result<std::vector<UpdateTime>>
tools::timeUpdates(const RunningOptions &options,
                   const std::vector<std::string> &packages,
                   const std::string &data) {
  std::vector<UpdateTime> times(packages.size());
  std::string parameters;
  for (size_t run = 0; run < 2 * packages.size(); ++run) {
    size_t i = std::min(run, 2 * packages.size() - 1 - run);
    RunningOptions running = options;
    running.package = packages[i];
    auto time = timePackage(running, data, parameters);
    if (!time.ok())
      return time.takeStatus();
    if (times[i].samples == 0 || time->seconds < times[i].seconds)
      times[i] = std::move(*time);
  }
  return times;
}
