#include "tools/tcc-run/TraceFile.h"

#include "runtime/base/OutputFile.h"

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

/// A kernel, or what else the command is.
static std::string nameOf(const Context &context,
                          const format::Command &command) {
  const format::Launch *launch = command.action_as_Launch();
  if (!launch)
    return format::EnumNameAction(command.action_type());
  const auto &kernels = *context.executable().program().kernels();
  return kernels.Get(launch->kernel())->symbol()->str();
}

static ordered_json describe(Context &context, const TraceEvent &event,
                             int64_t start) {
  const format::Command &command = context.walker().command(event.command);
  ordered_json arguments = {{"command", event.command}};
  if (event.cause != TraceEvent::kNone)
    arguments["cause"] = event.cause;
  if (event.flops >= 0)
    arguments["flops"] = event.flops;
  if (event.bytes >= 0)
    arguments["bytes"] = event.bytes;
  return {{"name", nameOf(context, command)},
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
  ordered_json events = ordered_json::array();
  for (size_t lane = 0; lane < context.walker().getStream().laneCount(); ++lane)
    events.push_back(nameLane(lane));
  for (const TraceEvent &event : reading->events)
    events.push_back(describe(context, event, reading->events.front().begin));
  ordered_json document = {{"traceEvents", std::move(events)},
                           {"lost", reading->lost}};
  Result<OutputFile> file = OutputFile::create(path);
  if (!file.ok())
    return file.takeStatus();
  constexpr auto kReplace = ordered_json::error_handler_t::replace;
  file->write(document.dump(-1, ' ', false, kReplace));
  return file->commit();
}
