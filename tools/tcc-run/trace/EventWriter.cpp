#include "tools/tcc-run/trace/EventWriter.h"

#include <cmath>

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;
using nlohmann::ordered_json;

/// Names may be no UTF-8.
static std::string print(const ordered_json &value) {
  return value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

Result<EventWriter> EventWriter::create(const std::string &path,
                                        int64_t start) {
  Result<OutputFile> file = OutputFile::create(path);
  if (!file.ok())
    return file.takeStatus();
  EventWriter writer(std::move(*file), start);
  writer.text = concat(kBegin, "\n");
  return writer;
}

void EventWriter::beginRank(int newRank) {
  rank = newRank;
  put({{"name", "process_name"},
       {"ph", "M"},
       {"pid", rank},
       {"args", {{"name", concat("rank ", rank)}}}});
}

void EventWriter::put(const ordered_json &event) {
  constexpr size_t kWritten = 1 << 16;
  text += std::exchange(isFirst, false) ? "" : ",\n";
  text += print(event);
  if (text.size() < kWritten)
    return;
  file.write(text);
  text.clear();
}

void EventWriter::nameTrack(uint32_t track, const std::string &name,
                            uint32_t order) {
  put({{"name", "thread_name"},
       {"ph", "M"},
       {"pid", rank},
       {"tid", track},
       {"args", {{"name", name}}}});
  put({{"name", "thread_sort_index"},
       {"ph", "M"},
       {"pid", rank},
       {"tid", track},
       {"args", {{"sort_index", order}}}});
}

void EventWriter::slice(uint32_t track, int64_t begin, int64_t end,
                        ordered_json event) {
  event["ph"] = "X";
  event["pid"] = rank;
  event["tid"] = track;
  event["ts"] = sinceStart(begin);
  event["dur"] = double(end - begin) / 1e3;
  put(event);
}

void EventWriter::counter(const char *name, int64_t time, double value) {
  if (std::isfinite(value))
    put({{"name", name},
         {"ph", "C"},
         {"pid", rank},
         {"ts", sinceStart(time)},
         {"args", {{"value", value}}}});
}

void EventWriter::flow(FlowPoint point, int64_t id, uint32_t track,
                       int64_t time) {
  constexpr const char *kPhases[] = {"s", "t", "f"};
  ordered_json event = {{"name", "batch"},
                        {"cat", "batch"},
                        {"ph", kPhases[size_t(point)]},
                        {"id", id},
                        {"pid", rank},
                        {"tid", track},
                        {"ts", sinceStart(time)}};
  if (point == FlowPoint::End)
    event["bp"] = "e";
  put(event);
}

Status EventWriter::close(const TraceSummary &summary) {
  ordered_json rest = {{"displayTimeUnit", "ms"},
                       {"baseTimeNanoseconds", start},
                       {"distributedInfo", {{"world_size", summary.ranks}}},
                       {"everyKthUpdate", summary.every},
                       {"lost", summary.lost}};
  if (summary.rank)
    rest["distributedInfo"]["rank"] = *summary.rank;
  // Goes on in the object.
  file.write(concat(text, "\n", kEnd, print(rest).substr(1)));
  return file.commit();
}
