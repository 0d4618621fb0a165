#include "tools/tcc-run/StepProfile.h"

#include <algorithm>
#include <cstdio>

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;

static constexpr int64_t kWarmup = 2;

StepProfile::StepProfile(int64_t count)
    : warmup(std::min(kWarmup, count - 1)),
      lastEnd(std::chrono::steady_clock::now()) {}

void StepProfile::add(std::span<const TracedRun> runs, const Pace &pace) {
  auto now = std::chrono::steady_clock::now();
  std::chrono::duration<double> seconds = now - std::exchange(lastEnd, now);
  double evaluated = std::exchange(evaluation, 0);
  if (warmup-- > 0)
    return;
  ++updates;
  for (const TracedRun &run : runs)
    launches.add(run);
  sum.all += seconds.count();
  sum.data += pace.dataWait;
  sum.checkpoints += pace.stall;
  sum.evaluations += evaluated;
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
  add("communication", double(lane.communication) / 1e9);
  add("other lanes", double(lane.otherLanes) / 1e9);
  add("data", sum.data);
  add("checkpoints", sum.checkpoints);
  add("evaluations", sum.evaluations);
  add("host", left);
  return parts;
}

Profile StepProfile::makeProfile(const Context &context) const {
  Profile profile = {.runs = updates,
                     .nanoseconds = uint64_t(1e9 * sum.all / double(updates)),
                     .launches = launches.list(),
                     .roofline = {}};
  profile.measureRoofline(context);
  return profile;
}

void StepProfile::print(TrainingSession &session) const {
  if (updates == 0) {
    std::printf("no update was left to profile\n");
    return;
  }
  std::printf("\nWhere %zu updates spent %.4g ms each:\n\n%10s %6s\n", updates,
              1e3 * sum.all / double(updates), "ms", "%");
  for (const Part &part : listParts())
    std::printf("%10.4f %6.2f  %s\n", 1e3 * part.seconds / double(updates),
                100 * part.seconds / sum.all, part.name.c_str());
  if (launches.lost() > 0)
    std::printf("%10s the trace had no room for %llu of the launches\n", "",
                static_cast<unsigned long long>(launches.lost()));
  const Context &context = session.lastContext();
  printProfile(context, makeProfile(context));
}

nlohmann::ordered_json StepProfile::describe(TrainingSession &session) const {
  nlohmann::ordered_json document = {{"updates", updates}};
  if (updates == 0)
    return document;
  auto &parts = document["parts_ms"];
  for (const Part &part : listParts())
    parts[part.name] = 1e3 * part.seconds / double(updates);
  document["lost_events"] = launches.lost();
  const Context &context = session.lastContext();
  describeProfile(context, makeProfile(context), document);
  return document;
}
