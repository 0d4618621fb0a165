#include "tools/tcc-run/StepProfile.h"

#include <algorithm>
#include <cstdio>

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;

static constexpr int64_t kWarmup = 2;

StepProfile::StepProfile(int64_t count, Batches &batches)
    : batches(batches), warmup(std::min(kWarmup, count - 1)),
      begun(readClocks()), lastEnd(std::chrono::steady_clock::now()) {
  batches.timeReading();
}

StepProfile::Clocks StepProfile::readClocks() const {
  Clocks clocks = {
      .thread = {}, .problem = {}, .reading = batches.loader().readingTime()};
  if (Result<ThreadTimes> times = readThreadTimes(); times.ok())
    clocks.thread = *times;
  else
    clocks.problem = times.takeStatus().message();
  return clocks;
}

void StepProfile::add(std::span<const TracedRun> runs, const Pace &pace,
                      bool isSkipped) {
  using Clock = std::chrono::steady_clock;
  Clock::time_point now = Clock::now();
  std::chrono::duration<double> seconds = now - lastEnd;
  double evaluated = std::exchange(evaluation, 0);
  double logged = std::exchange(logs, 0);
  if (warmup-- > 0) {
    begun = readClocks();
    lastEnd = Clock::now();
    return;
  }
  ++updates;
  skipped += isSkipped;
  for (const TracedRun &run : runs)
    launches.add(run);
  sum.all += seconds.count();
  sum.data += pace.dataWait;
  sum.checkpoints += pace.stall;
  sum.evaluations += evaluated;
  sum.logs += logged;
  // What profiling takes is no part of updates, unless a device goes on in it.
  bool waits =
      runs.empty() || runs.front().context->executable().device().isHost();
  lastEnd = waits ? Clock::now() : now;
}

/// The device is idle while the host alone does something, not while the host
/// works ahead: no part is more than is left by those before it.
std::vector<StepProfile::Part> StepProfile::listParts() const {
  const LaneTimes &lane = launches.lane();
  std::vector<Part> parts;
  double left = sum.all;
  auto add = [&](std::string name, double seconds) {
    seconds = std::clamp(seconds, 0.0, left);
    left -= seconds;
    parts.push_back({std::move(name), seconds});
  };
  for (format::Phase phase : format::EnumValuesPhase())
    add(format::nameOf(phase), double(lane.phases[size_t(phase)]) / 1e9);
  add("copies", double(lane.copies) / 1e9);
  add("uploads", double(lane.uploads) / 1e9);
  add("communication", double(lane.communication) / 1e9);
  add("other lanes", double(lane.otherLanes) / 1e9);
  add("data", sum.data);
  add("checkpoints", sum.checkpoints);
  add("evaluations", sum.evaluations);
  add("logs", sum.logs);
  add("host", left);
  return parts;
}

double StepProfile::partOf(std::string_view name) const {
  double seconds = 0;
  for (const Part &part : listParts())
    seconds += part.name == name ? part.seconds : 0;
  return seconds;
}

void StepProfile::end(TrainingSession &session) {
  ended = readClocks();
  if (isEmpty())
    return;
  sum.all = std::max(sum.all, double(launches.lane().sum()) / 1e9);
  context = &session.lastContext();
  profile = {.runs = updates,
             .nanoseconds = 1e9 * sum.all / double(updates),
             .launches = launches.list(),
             .roofline = {}};
  profile.measureRoofline(*context);
}

void StepProfile::print() const {
  if (isEmpty()) {
    std::printf("no update was profiled\n");
    return;
  }
  std::printf("\nWhere %zu updates spent %.4g ms each:\n\n%10s %6s\n", updates,
              1e3 * sum.all / double(updates), "ms", "%");
  for (const Part &part : listParts())
    std::printf("%10.4f %6.2f  %s\n", 1e3 * part.seconds / double(updates),
                100 * part.seconds / sum.all, part.name.c_str());
  if (launches.lost() > 0)
    std::printf("%10s the trace had no room for %llu of the commands\n", "",
                static_cast<unsigned long long>(launches.lost()));
  printProfile(*context, profile);
}

nlohmann::ordered_json StepProfile::describe() const {
  nlohmann::ordered_json document = {{"updates", updates}};
  if (isEmpty())
    return document;
  auto &parts = document["parts_ms"];
  for (const Part &part : listParts())
    parts[part.name] = 1e3 * part.seconds / double(updates);
  document["lost_events"] = launches.lost();
  describeProfile(*context, profile, document);
  return document;
}

/// Adds what is known of launches, nanoseconds as seconds.
static void addLaunches(const Profile &profile, RunFigures &figures) {
  constexpr double kShort = 5e-6, kLong = 50e-6;
  for (const LaunchTime &launch : profile.launches) {
    double seconds = double(launch.nanoseconds) / 1e9;
    figures.ideal += profile.shareOf(launch) * seconds;
    if (seconds < kShort * double(launch.calls)) {
      figures.shortLaunches += seconds;
      figures.shortIdeal += profile.shareOf(launch) * seconds;
    }
    if (seconds >= kLong * double(launch.calls))
      figures.longLaunches += seconds;
    if (!profile.isBoundByMemory(launch))
      continue;
    figures.memoryBound += seconds;
    if (launch.launch->phase() == format::Phase::optimizer)
      figures.updateBound += seconds;
  }
}

RunFigures StepProfile::measure(int cpus) const {
  RunFigures figures;
  figures.all = sum.all;
  figures.updates = int64_t(updates);
  figures.skipped = int64_t(skipped);
  for (format::Phase phase : format::EnumValuesPhase())
    figures.compute += partOf(format::nameOf(phase));
  figures.copies = partOf("copies");
  figures.exposedUploads = partOf("uploads");
  figures.communication = partOf("communication");
  figures.otherLanes = partOf("other lanes");
  figures.data = partOf("data");
  figures.checkpoints = partOf("checkpoints");
  figures.evaluations = partOf("evaluations");
  figures.logs = partOf("logs");
  figures.host = partOf("host");
  addLaunches(profile, figures);
  figures.uploads = double(launches.uploads()) / 1e9;
  figures.reading = ended.reading.passed - begun.reading.passed;
  figures.readingCpu = ended.reading.onCpu - begun.reading.onCpu;
  figures.workers = batches.loader().workerCount();
  figures.cpus = cpus;
  bool isHost = context->executable().device().isHost();
  figures.threads = isHost ? context->threads() : 0;
  addThreadTimes(figures);
  if (launches.lost() > 0)
    figures.notes.push_back(
        concat("the trace had no room for ", launches.lost(),
               " commands: what they took is counted as the host's"));
  return figures;
}

/// A thread that others compute with waits for them: what keeps it from running
/// is not known.
void StepProfile::addThreadTimes(RunFigures &figures) const {
  for (const Clocks *clocks : {&begun, &ended})
    if (!clocks->thread) {
      figures.notes.push_back(
          concat("how long others ran is not known: ", clocks->problem));
      return;
    }
  ThreadTimes thread = *ended.thread - *begun.thread;
  figures.delayed = thread.delayed;
  if (figures.threads == 1)
    figures.stopped =
        std::max(thread.passed - thread.ran - thread.delayed - figures.copies -
                     figures.exposedUploads - figures.communication -
                     figures.otherLanes - figures.data - figures.checkpoints -
                     figures.evaluations - figures.logs,
                 0.0);
}
