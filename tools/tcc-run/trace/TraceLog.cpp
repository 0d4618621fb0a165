#include "tools/tcc-run/trace/TraceLog.h"

#include "tools/tcc-run/ResidentMemory.h"

#include <algorithm>

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;

/// Between two looks at the memory of the process, which takes a microsecond or
/// more.
static constexpr int64_t kSampleNanoseconds = 10'000'000;

static bool isReading(const HostSpan &span) {
  return span.work == HostWork::ReadSamples ||
         span.work == HostWork::MixSamples;
}

void TraceLog::begin() {
  hostTrace.take(taken);
  lastEnd = readTraceClock();
}

size_t TraceLog::countEvents(const TracedUpdate &update) {
  size_t count = update.spans.size();
  for (const PackedRun &run : update.runs)
    count += run.events.count;
  return count;
}

/// Batches are read in the order of their numbers: one before those of the
/// update will not be trained on any more.
void TraceLog::takeSpans(TracedUpdate &update,
                         std::span<const TracedRun> runs) {
  hostTrace.take(taken);
  for (const HostSpan &span : taken)
    (isReading(span) ? readAhead : update.spans).push_back(span);
  int64_t last = -1;
  for (const TracedRun &run : runs)
    last = std::max(last, run.batch);
  std::erase_if(readAhead, [&](const HostSpan &span) {
    if (span.batch > last)
      return false;
    if (std::ranges::count(runs, span.batch, &TracedRun::batch))
      update.spans.push_back(span);
    return true;
  });
}

void TraceLog::add(const StepMetrics &metrics,
                   std::span<const TracedRun> runs) {
  TracedUpdate update = {.step = metrics.step,
                         .begin = lastEnd,
                         .end = readTraceClock(),
                         .loss = metrics.loss,
                         .residentBytes = {},
                         .runs = {},
                         .spans = {}};
  lastEnd = update.end;
  bool isKept = keepsNext();
  ++count;
  takeSpans(update, runs);
  if (!isKept)
    return;
  update.runs.reserve(runs.size());
  for (const TracedRun &run : runs)
    update.runs.push_back({run.context, packer.pack(run.reading.events),
                           run.reading.lost, run.batch});
  if (update.end - lastSample >= kSampleNanoseconds) {
    lastSample = update.end;
    update.residentBytes = readResidentBytes();
  }
  events += countEvents(update);
  kept.push_back(std::move(update));
  while (events > mostEvents && kept.size() > 1)
    thinOut();
}

TracedRun TraceLog::unpack(const PackedRun &run) const {
  return {run.context, {packer.unpack(run.events), run.lost}, run.batch};
}

/// Every second update of those that are kept stays, the first among them.
void TraceLog::thinOut() {
  stride *= 2;
  size_t place = 0;
  events = 0;
  for (size_t i = 0; i < kept.size(); i += 2, ++place) {
    if (i > 0)
      kept[place] = std::move(kept[i]);
    events += countEvents(kept[place]);
  }
  kept.erase(kept.begin() + ptrdiff_t(place), kept.end());
}

void TraceLog::end() {
  hostTrace.take(taken);
  if (!kept.empty())
    for (const HostSpan &span : taken)
      if (!isReading(span))
        kept.back().spans.push_back(span);
}
