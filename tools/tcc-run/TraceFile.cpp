#include "tools/tcc-run/TraceFile.h"

#include "runtime/base/OutputFile.h"
#include "runtime/package/Commands.h"

#include <nlohmann/json.hpp>

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;
using nlohmann::ordered_json;

/// The first run is given, the second one captured.
static constexpr int kRuns = 3;

static Result<Trace::Reading> traceLastRun(Context &context) {
  Stream &stream = context.walker().getStream();
  Trace trace(stream.laneCount());
  Trace::Reading reading;
  Status status = stream.trace(&trace);
  for (int i = 0; i < kRuns && status.ok(); ++i) {
    status = context.run();
    reading = trace.take();
  }
  if (Status ended = stream.trace(nullptr); status.ok())
    status = std::move(ended);
  if (!status.ok())
    return status;
  return reading;
}

int64_t TracedRun::exposed() const {
  int64_t nanoseconds = 0;
  for (const TraceEvent &event : reading.events)
    if (event.lane == 0 && event.cause != TraceEvent::kNone)
      nanoseconds += event.end - event.begin;
  return nanoseconds;
}

namespace {

/// Names a command in the trace of its program.
struct Namer {
  const format::Program &program;
  const format::Command &command;

  std::string operator()(const format::Launch &launch) const {
    return program.kernels()->Get(launch.kernel())->symbol()->str();
  }
  std::string operator()(const Collective auto &collective) const {
    const flatbuffers::String *node = collective.node();
    return concat(kind(), node ? " " : "", node ? node->string_view() : "");
  }
  std::string operator()(const auto &) const { return kind(); }

  const char *kind() const {
    return format::EnumNameAction(command.action_type());
  }
};

} // namespace

static ordered_json describe(const TracedRun &run, const TraceEvent &event,
                             int64_t start) {
  const format::Command &command = run.context->walker().command(event.command);
  Namer namer{run.context->executable().program(), command};
  ordered_json arguments = {{"command", event.command},
                            {"entry", format::nameOf(run.context->entry())}};
  if (event.cause != TraceEvent::kNone)
    arguments["cause"] = event.cause;
  if (event.flops >= 0)
    arguments["flops"] = event.flops;
  if (event.bytes >= 0)
    arguments["bytes"] = event.bytes;
  return {{"name", visitCommand(command, namer)},
          {"ph", "X"},
          {"pid", 0},
          {"tid", event.lane},
          {"ts", (event.begin - start) / 1e3},
          {"dur", (event.end - event.begin) / 1e3},
          {"args", std::move(arguments)}};
}

/// What viewers call the track of a lane.
static ordered_json nameLane(size_t lane) {
  return {{"name", "thread_name"},
          {"ph", "M"},
          {"pid", 0},
          {"tid", lane},
          {"args", {{"name", concat("lane ", lane)}}}};
}

Status tools::writeTrace(Context &context, const std::string &path) {
  Result<Trace::Reading> reading = traceLastRun(context);
  if (!reading.ok())
    return reading.takeStatus();
  TracedRun run = {&context, std::move(*reading)};
  return writeTrace(std::span(&run, 1), path);
}

/// The first event of all.
static int64_t findStart(std::span<const TracedRun> runs) {
  for (const TracedRun &run : runs)
    if (!run.reading.events.empty())
      return run.reading.events.front().begin;
  return 0;
}

Status tools::writeTrace(std::span<const TracedRun> runs,
                         const std::string &path) {
  ordered_json events = ordered_json::array();
  Stream &stream = runs.front().context->walker().getStream();
  for (size_t lane = 0; lane < stream.laneCount(); ++lane)
    events.push_back(nameLane(lane));
  uint64_t lost = 0;
  for (const TracedRun &run : runs) {
    lost += run.reading.lost;
    for (const TraceEvent &event : run.reading.events)
      events.push_back(describe(run, event, findStart(runs)));
  }
  ordered_json document = {{"traceEvents", std::move(events)}, {"lost", lost}};
  Result<OutputFile> file = OutputFile::create(path);
  if (!file.ok())
    return file.takeStatus();
  constexpr auto kReplace = ordered_json::error_handler_t::replace;
  file->write(document.dump(-1, ' ', false, kReplace));
  return file->commit();
}
