#include "tools/tcc-run/Updates.h"

#include <cstring>

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
  int64_t number = -1;
  if (kind != EntryKind::apply) {
    auto next = session.nextBatchNumbers(batches.loader().depth());
    if (Status status = batches.read(session.batchNumber(), next); !status.ok())
      return status;
    batch = batches.views();
    session.spareThreads(batches.loader().sparedThreads());
    number = session.batchNumber();
    given.push_back(number);
  }
  HostTimer timer(host, HostWork::GiveStep, kUpdateTrack, number);
  if (Status status = session.start(kind, batch); !status.ok())
    return status;
  if (kind == EntryKind::accumulate_step)
    ++accumulated;
  else
    accumulated = 0, ++begun;
  return Status();
}

void Updates::beginAgain() {
  begun = session.stepCount();
  accumulated = 0;
  given.clear();
  finished = 0;
}

int64_t Updates::lastSampleCount() const {
  const BatchOrder &order = batches.loader().order();
  int64_t count = 0;
  for (int64_t number : last)
    count += order.sizeOf(order.at(number));
  return count * session.rankCount();
}

std::optional<int64_t> Updates::lastTokenCount() const {
  const BatchOrder &order = batches.loader().order();
  int64_t count = 0;
  for (int64_t number : last)
    count += batches.tokensOf(order.at(number));
  return count > 0 ? std::optional(count * session.rankCount()) : std::nullopt;
}

void Updates::noteMade() {
  auto end = given.begin() + accumulation;
  last.assign(given.begin(), end);
  given.erase(given.begin(), end);
  finished = 0;
}

Status Updates::explain(Status failure) {
  if (failure.code() != Code::Numerics)
    return batches.explain(std::move(failure), session, session.failedBatch());
  noteMade();
  std::string found = findNonFinite(last);
  return found.empty() ? std::move(failure)
                       : makeError(failure.code(), failure.message(),
                                   "; first was ", found);
}

/// Copies a batch, which the next one is read over.
static Result<std::vector<Tensor>> copy(std::span<const TensorView> batch) {
  std::vector<Tensor> tensors;
  for (const TensorView &view : batch) {
    auto tensor =
        Tensor::allocate(view.dtype, {view.shape.begin(), view.shape.end()});
    if (!tensor.ok())
      return tensor.takeStatus();
    std::memcpy(tensor->data.data(), view.data, tensor->data.size());
    tensors.push_back(std::move(*tensor));
  }
  return tensors;
}

/// What is not finite in batch `batch`; `other` is a batch of another update.
Result<std::optional<NonFinite>> Updates::findIn(int64_t batch, int64_t other) {
  if (Status status = batches.read(other); !status.ok())
    return status;
  auto healthy = copy(batches.views());
  if (!healthy.ok())
    return healthy.takeStatus();
  std::vector<TensorView> views;
  for (const Tensor &tensor : *healthy)
    views.push_back({tensor.data.data(), tensor.dtype, tensor.shape});
  if (Status status = batches.read(batch); !status.ok())
    return status;
  return session.findNonFinite(batches.views(), views);
}

/// A batch of an update before, or of a later one, that has the sizes of batch
/// `number`, if one of the nearest has.
int64_t Updates::findLike(int64_t number) const {
  constexpr int64_t kTries = 64;
  const BatchOrder &order = batches.loader().order();
  int64_t step = accumulation * session.rankCount();
  for (int64_t i = 1; i < kTries; ++i)
    for (int64_t other : {number - i * step, number + i * step})
      if (other >= 0 && order.at(other).bucket == order.at(number).bucket)
        return other;
  return number >= step ? number - step : number + step;
}

std::string Updates::findNonFinite(const std::vector<int64_t> &numbers) {
  for (int64_t number : numbers) {
    auto found = findIn(number, findLike(number));
    if (!found.ok())
      return concat("not found: ", found.takeStatus().message());
    if (*found)
      return concat(describe(**found), ", with batch ", number);
  }
  return "";
}

Status Updates::finishStep() {
  HostTimer timer(host, HostWork::AwaitStep);
  Status status = session.finish();
  if (status.ok() || status.code() == Code::Numerics)
    flops += session.lastContext().walker().flops();
  return status;
}

/// One update; what comes after it is begun meanwhile, up to step `end`.
Status Updates::make(int64_t end) {
  int64_t before = session.metrics().step;
  tracedCount = 0;
  flops = 0;
  if (events && session.underWay() == 0)
    (void)events->take(); // what other entries did since
  if (waited)
    waited = 0;
  do {
    while (session.underWay() < session.depth() && begun < end)
      if (Status status = begin(); !status.ok())
        return explain(std::move(status));
    if (Status status = finishStep(); !status.ok())
      return explain(std::move(status));
    noteTrace();
  } while (session.metrics().step == before);
  noteMade();
  return Status();
}

void Updates::trace(Trace &written, bool keeps, HostTrace *ofHost) {
  events = &written;
  keepsRuns = keeps;
  host = ofHost;
  if (session.rankCount() > 1)
    waited = 0;
}

void Updates::noteTrace() {
  if (!events)
    return;
  if (tracedCount == traced.size())
    traced.emplace_back();
  TracedRun &run = traced[tracedCount];
  run.context = &session.lastContext();
  events->take(run.reading);
  // What applies sums, by one rank or several, takes none.
  bool takesBatch = run.context->entry().inputs()->size() > 0;
  run.batch = takesBatch ? given[finished++] : -1;
  if (run.reading.lost > 0)
    waited = std::nullopt;
  if (waited) {
    int64_t before = times.lane().communication;
    times.add(run);
    *waited += double(times.lane().communication - before) / 1e9;
  }
  tracedCount += keepsRuns;
}
