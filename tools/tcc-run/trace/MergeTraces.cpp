#include "tools/tcc-run/trace/MergeTraces.h"

#include "runtime/base/ParseJson.h"
#include "tools/tcc-run/Json.h"
#include "tools/tcc-run/Session.h"
#include "tools/tcc-run/trace/EventWriter.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iostream>
#include <map>

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;
using nlohmann::ordered_json;

namespace {

/// A collective of a run: its update, its command in the entry, and how many
/// runs of the update had it before.
struct CollectiveKey {
  int64_t step, command, before;
  auto operator<=>(const CollectiveKey &) const = default;
};

/// A trace of one rank, as `writeTrace` writes it: an event a line.
class RankTrace {
public:
  explicit RankTrace(std::string path) : path(std::move(path)) {}

  /// Reads all of it once: its rank, and when its collectives ended.
  Status scan();
  /// Calls `call` with each event, until that fails.
  template <typename Call> Status forEachEvent(Call call);

  /// Microseconds to add to its times so that they are those of `first`.
  Result<double> findShift(const RankTrace &first) const;

  std::string path;
  int rank = -1, ranks = 0;
  int64_t every = 1, lost = 0;
  int64_t base = 0;                     ///< nanoseconds, where its times begin
  std::map<CollectiveKey, double> ends; ///< microseconds

private:
  Status complain(std::string_view found) const {
    return makeError(Code::BadData, "'", path, "' line ", line, ": ", found,
                     ", expected a trace of tcc-run train");
  }
  Status noteCollective(const ordered_json &event);
  Status readSummary(std::string_view text);

  size_t line = 0;
  std::map<std::pair<int64_t, int64_t>, int64_t> counts;
};

} // namespace

template <typename Number>
static std::optional<Number> getNumber(const ordered_json &object,
                                       const char *name) {
  auto found = object.find(name);
  if (found == object.end() || !found->is_number())
    return std::nullopt;
  return found->template get<Number>();
}

/// What follows the events.
Status RankTrace::readSummary(std::string_view text) {
  auto summary = parseObject<ordered_json>(concat("{", text.substr(2)));
  if (!summary)
    return complain("no JSON");
  auto info = summary->find("distributedInfo");
  if (info == summary->end() || !info->is_object())
    return complain("no distributedInfo");
  auto itsRank = getNumber<int>(*info, "rank");
  auto size = getNumber<int>(*info, "world_size");
  auto start = getNumber<int64_t>(*summary, "baseTimeNanoseconds");
  if (!itsRank || !size || !start)
    return complain("no rank, world_size or baseTimeNanoseconds");
  rank = *itsRank;
  ranks = *size;
  base = *start;
  every = getNumber<int64_t>(*summary, "everyKthUpdate").value_or(1);
  lost = getNumber<int64_t>(*summary, "lost").value_or(0);
  return Status();
}

template <typename Call> Status RankTrace::forEachEvent(Call call) {
  std::ifstream file(path);
  std::string text;
  line = 1;
  if (!file)
    return makeError(Code::Io, "cannot read '", path, "'");
  if (!std::getline(file, text) || text != EventWriter::kBegin)
    return complain("another beginning");
  while (++line, std::getline(file, text)) {
    if (text.starts_with(EventWriter::kEnd))
      return readSummary(text);
    if (text.ends_with(','))
      text.pop_back();
    auto event = parseObject<ordered_json>(text);
    if (!event)
      return complain("no event");
    if (Status status = call(std::move(*event)); !status.ok())
      return status;
  }
  return complain("its end");
}

Status RankTrace::noteCollective(const ordered_json &event) {
  auto arguments = event.find("args");
  if (arguments == event.end() || !arguments->is_object() ||
      !arguments->contains("collective"))
    return Status();
  auto step = getNumber<int64_t>(*arguments, "step");
  auto command = getNumber<int64_t>(*arguments, "command");
  auto begin = getNumber<double>(event, "ts");
  auto duration = getNumber<double>(event, "dur");
  if (!step || !command || !begin || !duration)
    return complain("a collective without step, command, ts or dur");
  ends[{*step, *command, counts[{*step, *command}]++}] = *begin + *duration;
  return Status();
}

Status RankTrace::scan() {
  return forEachEvent(
      [&](const ordered_json &event) { return noteCollective(event); });
}

Result<double> RankTrace::findShift(const RankTrace &first) const {
  std::vector<double> shifts;
  for (const auto &[key, end] : ends)
    if (auto other = first.ends.find(key); other != first.ends.end())
      shifts.push_back(other->second - end);
  if (shifts.empty())
    return makeError(Code::BadData, "'", path, "' and '", first.path,
                     "' have no collective of one update: their clocks cannot "
                     "be aligned");
  auto middle = shifts.begin() + ptrdiff_t(shifts.size() / 2);
  std::ranges::nth_element(shifts, middle);
  return *middle;
}

//===----------------------------------------------------------------------===//
// The command
//===----------------------------------------------------------------------===//

/// By rank. Each is there once.
static Result<std::vector<RankTrace>>
scanAll(const std::vector<std::string> &files) {
  std::vector<RankTrace> traces;
  for (const std::string &file : files) {
    RankTrace &trace = traces.emplace_back(file);
    if (Status status = trace.scan(); !status.ok())
      return status;
  }
  std::ranges::sort(traces, {}, &RankTrace::rank);
  for (size_t i = 1; i < traces.size(); ++i)
    if (traces[i].rank == traces[i - 1].rank)
      return makeError(Code::Usage, "'", traces[i].path, "' and '",
                       traces[i - 1].path, "' are both of rank ",
                       traces[i].rank);
  return traces;
}

/// Files may be of some ranks only.
static TraceSummary summarize(const std::vector<RankTrace> &traces) {
  TraceSummary summary = {
      .rank = std::nullopt, .lost = 0, .every = 1, .ranks = traces[0].ranks};
  for (const RankTrace &trace : traces) {
    summary.lost += uint64_t(trace.lost);
    summary.every = std::max(summary.every, trace.every);
  }
  return summary;
}

static Status merge(const MergeOptions &options) {
  auto traces = scanAll(options.files);
  if (!traces.ok())
    return traces.takeStatus();
  std::vector<double> shifts = {0};
  for (size_t i = 1; i < traces->size(); ++i) {
    Result<double> shift = (*traces)[i].findShift(traces->front());
    if (!shift.ok())
      return shift.takeStatus();
    shifts.push_back(*shift);
  }
  // None of their times is negative.
  double least = std::min(std::ranges::min(shifts), 0.0);
  int64_t base = traces->front().base + std::llround(1e3 * least);
  auto writer = EventWriter::create(options.output, base);
  if (!writer.ok())
    return writer.takeStatus();
  for (size_t i = 0; i < traces->size(); ++i) {
    Status status = (*traces)[i].forEachEvent([&](ordered_json event) {
      if (auto time = getNumber<double>(event, "ts"))
        event["ts"] = std::round(1e3 * (*time + shifts[i] - least)) / 1e3;
      writer->put(event);
      return Status();
    });
    if (!status.ok())
      return status;
  }
  return writer->close(summarize(*traces));
}

int tools::mergeCommand(const MergeOptions &options) {
  Status status = merge(options);
  return status.ok() ? 0 : report(status);
}
