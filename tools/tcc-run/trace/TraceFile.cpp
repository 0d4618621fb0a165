#include "tools/tcc-run/trace/TraceFile.h"

#include "runtime/package/Commands.h"
#include "tools/tcc-run/trace/ArenaCurve.h"
#include "tools/tcc-run/trace/EventWriter.h"
#include "tools/tcc-run/trace/Slices.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;
using nlohmann::ordered_json;

//===----------------------------------------------------------------------===//
// Tracks
//===----------------------------------------------------------------------===//

/// The numbers of tracks in files: lanes have their own.
static constexpr uint32_t kUploads = 1000, kFirstHostTrack = 1001;

static uint32_t trackOf(const TraceEvent &event) {
  return event.lane == TraceEvent::kUploads ? kUploads : event.lane;
}

static uint32_t trackOf(const HostSpan &span) {
  return kFirstHostTrack + span.track;
}

static std::string nameTrack(uint32_t track) {
  if (track < kUploads)
    return concat("lane ", track);
  if (track == kUploads)
    return "copies to the device";
  switch (track - kFirstHostTrack) {
  case kUpdateTrack:
    return "updates";
  case kCheckpointTrack:
    return "checkpoints";
  default:
    return concat("worker ", track - kFirstHostTrack - kFirstWorkerTrack + 1);
  }
}

/// Updates come first, then lanes.
static uint32_t orderOf(uint32_t track) {
  return track == kFirstHostTrack + kUpdateTrack ? 0 : track + 1;
}

static const char *nameOf(HostWork work) {
  switch (work) {
  case HostWork::AwaitBatch:
    return "wait for batch";
  case HostWork::ReadSamples:
    return "read samples";
  case HostWork::MixSamples:
    return "mix samples";
  case HostWork::GiveStep:
    return "give step";
  case HostWork::AwaitStep:
    return "wait for step";
  case HostWork::Evaluate:
    return "evaluate";
  case HostWork::WriteLogs:
    return "write logs";
  case HostWork::AwaitCheckpoint:
    return "wait for checkpoint";
  case HostWork::WriteCheckpoint:
    return "write checkpoint";
  case HostWork::PublishCheckpoint:
    return "publish checkpoint";
  }
  return "";
}

//===----------------------------------------------------------------------===//
// Commands
//===----------------------------------------------------------------------===//

namespace {

/// Says what a command is, in the words of PyTorch's profiler where a device
/// that is not the host does it.
struct Describer {
  const format::Program &program;
  const format::Command &command;
  bool isHost;
  ordered_json &event;

  void operator()(const format::Launch &launch) const {
    event["name"] = program.kernels()->Get(launch.kernel())->symbol()->str();
    event["cat"] = isHost ? "cpu_op" : "kernel";
    ordered_json &arguments = event["args"];
    if (launch.op())
      arguments["op"] = launch.op()->str();
    if (launch.node())
      arguments["node"] = launch.node()->str();
  }
  void operator()(const Collective auto &collective) const {
    const flatbuffers::String *node = collective.node();
    event["name"] = concat(kind(), node ? " " : "", node ? node->str() : "");
    event["cat"] = isHost ? "cpu_op" : "kernel";
    event["args"]["collective"] = kind();
  }
  void operator()(const format::Copy &) const {
    event["name"] = kind();
    event["cat"] = isHost ? "cpu_op" : "gpu_memcpy";
  }
  void operator()(const auto &) const {
    event["name"] = kind();
    event["cat"] = "wait";
  }

  const char *kind() const {
    return format::EnumNameAction(command.action_type());
  }
};

/// Writes what runs and threads did.
class Tracer {
public:
  explicit Tracer(EventWriter &writer) : writer(writer) {}

  void write(const TracedRun &run, int64_t step);
  void write(const TracedUpdate &update, const TraceLog &log);
  uint64_t lost() const { return lostEvents; }

private:
  const ordered_json &describe(Context &context, uint32_t command);
  void write(Context &context, const TraceEvent &event, int64_t step);
  void writeUpload(const TraceEvent &event);
  void write(const HostSpan &span);
  void writeLane(const TracedRun &run, uint32_t lane, int64_t step);
  void writeArena(const TracedRun &run);
  void writeFlow(const TracedUpdate &update, const TracedRun &run);

  EventWriter &writer;
  std::map<std::pair<const format::Entry *, uint32_t>, ordered_json> commands;
  std::map<const format::Entry *, ArenaCurve> curves;
  uint64_t lostEvents = 0;
};

} // namespace

/// What all events of a command share.
const ordered_json &Tracer::describe(Context &context, uint32_t command) {
  auto [found, isNew] =
      commands.try_emplace({&context.entry(), command}, ordered_json());
  ordered_json &event = found->second;
  if (!isNew)
    return event;
  event = {{"name", ""}, {"cat", ""}, {"args", {{"command", command}}}};
  const format::Command &described = context.walker().command(command);
  Describer describer{context.executable().program(), described,
                      context.executable().device().isHost(), event};
  visitCommand(described, describer);
  return event;
}

void Tracer::write(Context &context, const TraceEvent &event, int64_t step) {
  ordered_json written = describe(context, event.command);
  ordered_json &arguments = written["args"];
  if (step > 0 && arguments.contains("collective"))
    arguments["step"] = step; // what traces of ranks are aligned by
  if (event.cause != TraceEvent::kNone)
    arguments["cause"] = event.cause;
  if (event.flops >= 0)
    arguments["flops"] = event.flops;
  if (event.bytes >= 0)
    arguments["bytes"] = event.bytes;
  if (!context.executable().device().isHost() &&
      event.cause == TraceEvent::kNone) {
    arguments["device"] = 0;
    arguments["stream"] = event.lane;
  }
  writer.slice(trackOf(event), event.begin, event.end, std::move(written));
}

void Tracer::writeUpload(const TraceEvent &event) {
  writer.slice(
      trackOf(event), event.begin, event.end,
      {{"name", "Memcpy HtoD"},
       {"cat", "gpu_memcpy"},
       {"args",
        {{"bytes", event.bytes}, {"device", 0}, {"stream", trackOf(event)}}}});
}

void Tracer::write(const HostSpan &span) {
  ordered_json event = {{"name", ::nameOf(span.work)},
                        {"cat", "user_annotation"}};
  if (span.batch >= 0)
    event["args"] = {{"batch", span.batch}};
  writer.slice(trackOf(span), span.begin, span.end, std::move(event));
}

/// The run, its phases and modules, and commands in them: what has others
/// within it comes before them.
void Tracer::writeLane(const TracedRun &run, uint32_t lane, int64_t step) {
  std::vector<const TraceEvent *> events;
  for (const TraceEvent &event : run.reading.events)
    if (event.lane == lane)
      events.push_back(&event);
  if (events.empty())
    return;
  bool isHost = run.context->executable().device().isHost();
  ordered_json part = {
      {"name", format::nameOf(run.context->entry())},
      {"cat", isHost ? "user_annotation" : "gpu_user_annotation"}};
  if (step > 0)
    part["args"]["step"] = step;
  if (run.batch >= 0)
    part["args"]["batch"] = run.batch;
  writer.slice(lane, events.front()->begin, events.back()->end, part);
  part.erase("args");
  auto event = events.begin();
  for (const Slice &slice : listSlices(run, lane)) {
    for (; event != events.end() && (*event)->begin < slice.begin; ++event)
      write(*run.context, **event, step);
    part["name"] = slice.name;
    writer.slice(lane, slice.begin, slice.end, part);
  }
  for (; event != events.end(); ++event)
    write(*run.context, **event, step);
}

/// Changes of less than a 64th of the arena are left out.
void Tracer::writeArena(const TracedRun &run) {
  constexpr int64_t kSteps = 64;
  const format::Entry &entry = run.context->entry();
  auto [curve, isNew] = curves.try_emplace(&entry);
  if (isNew)
    curve->second = makeArenaCurve(entry);
  int64_t least = int64_t(entry.scratch_bytes()) / kSteps, last = -1;
  for (const TraceEvent &event : run.reading.events) {
    auto live = curve->second.find(event.command);
    if (event.lane != 0 || live == curve->second.end() ||
        (last >= 0 && std::abs(live->second - last) < least))
      continue;
    last = live->second;
    writer.counter("arena in use", event.begin, double(last));
  }
}

void Tracer::write(const TracedRun &run, int64_t step) {
  lostEvents += run.reading.lost;
  uint32_t lanes = 0;
  for (const TraceEvent &event : run.reading.events)
    if (event.lane == TraceEvent::kUploads)
      writeUpload(event);
    else
      lanes = std::max(lanes, event.lane + 1);
  for (uint32_t lane = 0; lane < lanes; ++lane)
    writeLane(run, lane, step);
  writeArena(run);
}

/// From where a batch was read, over where it was given, to the run that took
/// it.
void Tracer::writeFlow(const TracedUpdate &update, const TracedRun &run) {
  auto isOfBatch = [&](HostWork work) {
    return std::ranges::find_if(update.spans, [&, work](const HostSpan &span) {
      return span.work == work && span.batch == run.batch;
    });
  };
  auto read = isOfBatch(HostWork::ReadSamples);
  auto begun = std::ranges::find(run.reading.events, 0u, &TraceEvent::lane);
  if (run.batch < 0 || read == update.spans.end() ||
      begun == run.reading.events.end())
    return;
  int64_t id = run.batch + 1;
  writer.flow(FlowPoint::Start, id, trackOf(*read), read->begin);
  if (auto given = isOfBatch(HostWork::GiveStep); given != update.spans.end())
    writer.flow(FlowPoint::Step, id, trackOf(*given), given->begin);
  writer.flow(FlowPoint::End, id, trackOf(*begun), begun->begin);
}

void Tracer::write(const TracedUpdate &update, const TraceLog &log) {
  writer.slice(
      kFirstHostTrack + kUpdateTrack, update.begin, update.end,
      {{"name", concat("update ", update.step)}, {"cat", "user_annotation"}});
  std::vector<HostSpan> spans = update.spans;
  std::ranges::sort(spans, [](const HostSpan &a, const HostSpan &b) {
    return std::tie(a.begin, b.end) < std::tie(b.begin, a.end);
  });
  for (const HostSpan &span : spans)
    write(span);
  for (const PackedRun &packed : update.runs) {
    TracedRun run = log.unpack(packed);
    write(run, update.step);
    writeFlow(update, run);
  }
  writer.counter("loss", update.end, update.loss);
  if (update.residentBytes)
    writer.counter("resident memory", update.end,
                   double(*update.residentBytes));
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

/// Where the first slice of all begins.
static int64_t findStart(std::span<const TracedUpdate> updates) {
  int64_t start = INT64_MAX;
  for (const TracedUpdate &update : updates) {
    start = std::min(start, update.begin);
    for (const HostSpan &span : update.spans)
      start = std::min(start, span.begin);
    for (const PackedRun &run : update.runs)
      if (run.events.count > 0)
        start = std::min(start, run.events.begin);
  }
  return start;
}

/// Names the tracks of a device.
static void nameLanes(const Stream &stream, bool isHost, EventWriter &writer) {
  for (uint32_t lane = 0; lane < stream.laneCount(); ++lane)
    writer.nameTrack(lane, nameTrack(lane), orderOf(lane));
  if (!isHost)
    writer.nameTrack(kUploads, nameTrack(kUploads), orderOf(kUploads));
}

/// Names the tracks of threads.
static void nameThreads(std::span<const TracedUpdate> updates,
                        EventWriter &writer) {
  std::set<uint32_t> tracks = {kFirstHostTrack + kUpdateTrack};
  for (const TracedUpdate &update : updates)
    for (const HostSpan &span : update.spans)
      tracks.insert(trackOf(span));
  for (uint32_t track : tracks)
    writer.nameTrack(track, nameTrack(track), orderOf(track));
}

Status tools::writeTrace(const TraceLog &log, const TrainingSession &session,
                         const std::string &path) {
  std::span<const TracedUpdate> updates = log.updates();
  auto writer = EventWriter::create(path, findStart(updates));
  if (!writer.ok())
    return writer.takeStatus();
  writer->beginRank(session.rank());
  nameLanes(session.stream(), session.executable().device().isHost(), *writer);
  nameThreads(updates, *writer);
  Tracer tracer(*writer);
  for (const TracedUpdate &update : updates)
    tracer.write(update, log);
  return writer->close({.rank = session.rank(),
                        .lost = tracer.lost(),
                        .every = log.every(),
                        .ranks = session.rankCount()});
}

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

Status tools::writeTrace(Context &context, const std::string &path) {
  Result<Trace::Reading> reading = traceLastRun(context);
  if (!reading.ok())
    return reading.takeStatus();
  int64_t start = reading->events.empty() ? 0 : reading->events.front().begin;
  auto writer = EventWriter::create(path, start);
  if (!writer.ok())
    return writer.takeStatus();
  writer->beginRank(0);
  nameLanes(context.walker().getStream(),
            context.executable().device().isHost(), *writer);
  Tracer tracer(*writer);
  tracer.write({&context, std::move(*reading)}, /*step=*/0);
  return writer->close(
      {.rank = 0, .lost = tracer.lost(), .every = 1, .ranks = 1});
}

std::string tools::tracePathOf(const std::string &path, int rank) {
  if (rank == 0)
    return path;
  std::filesystem::path file(path);
  return (file.parent_path() / concat(file.stem().string(), ".rank-", rank,
                                      file.extension().string()))
      .string();
}
