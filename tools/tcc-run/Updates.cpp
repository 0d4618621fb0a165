#include "tools/tcc-run/Updates.h"

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;

/// One rank adds up several batches, then applies them; several ranks add up
/// all but the last, and that one as they update, unless sums are to be exact.
format::EntryKind Updates::nextStep() const {
  using format::EntryKind;
  if (accumulated == accumulation)
    return EntryKind::apply;
  bool isLast = accumulated == accumulation - 1;
  bool isUpdate = isLast && session.exactBatches() == 0 &&
                  (accumulation == 1 || session.rankCount() > 1);
  return isUpdate ? EntryKind::train_step : EntryKind::accumulate_step;
}

/// Gives the session what comes next: a batch, or the update from several.
Status Updates::begin() {
  using format::EntryKind;
  EntryKind kind = nextStep();
  std::span<const TensorView> batch;
  if (kind != EntryKind::apply) {
    if (Status status = batches.read(session.batchNumber()); !status.ok())
      return status;
    batch = batches.views();
  }
  if (Status status = session.start(kind, batch); !status.ok())
    return status;
  if (kind == EntryKind::accumulate_step)
    ++accumulated;
  else
    accumulated = 0, ++begun;
  return Status();
}

Status Updates::explain(Status failure) {
  return batches.explain(std::move(failure), session, session.failedBatch());
}

/// One update; what comes after it is begun meanwhile, up to step `end`.
Status Updates::make(int64_t end) {
  int64_t before = session.metrics().step;
  traced.clear();
  if (waited)
    waited = 0;
  do {
    while (session.underWay() < session.depth() && begun < end)
      if (Status status = begin(); !status.ok())
        return explain(std::move(status));
    if (Status status = session.finish(); !status.ok())
      return explain(std::move(status));
    noteTrace();
  } while (session.metrics().step == before);
  return Status();
}

void Updates::trace(Trace &written, bool keeps) {
  events = &written;
  keepsRuns = keeps;
  if (session.rankCount() > 1)
    waited = 0;
}

void Updates::noteTrace() {
  if (!events)
    return;
  TracedRun run = {&session.lastContext(), events->take()};
  if (run.reading.lost > 0)
    waited = std::nullopt;
  if (waited)
    *waited += double(run.exposed()) / 1e9;
  if (keepsRuns)
    traced.push_back(std::move(run));
}
