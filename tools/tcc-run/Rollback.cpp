#include "tools/tcc-run/Rollback.h"

#include "runtime/package/Digest.h"
#include "tools/tcc-run/TrainSession.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iostream>
#include <limits>

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;

static constexpr std::string_view kZ = "spike_z", kEvery = "rollback_every";

//===----------------------------------------------------------------------===//
// The plan
//===----------------------------------------------------------------------===//

SpikePlan::SpikePlan(const format::Program &program) {
  if (const format::Spikes *spikes = program.spikes()) {
    z = spikes->z();
    rollbackEvery = static_cast<int64_t>(spikes->rollback_every());
  }
}

bool SpikePlan::has(std::string_view key) { return key == kZ || key == kEvery; }

template <typename Number>
static bool read(std::string_view text, Number least, Number &to) {
  const char *end = text.data() + text.size();
  auto [rest, failure] = std::from_chars(text.data(), end, to);
  return failure == std::errc() && rest == end && to >= least;
}

Status SpikePlan::set(std::string_view key, std::string_view value) {
  bool isRead = key == kZ ? read(value, 0.0, z) && std::isfinite(z)
                          : read(value, int64_t(1), rollbackEvery);
  if (isRead)
    return Status();
  return makeError(Code::Usage, "--set: ", key, " is '", value, "', expected ",
                   key == kZ ? "a number of deviations, or 0 for none"
                             : "a number of updates");
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

Result<Rollback> Rollback::open(TrainingSession &session, const SpikePlan &plan,
                                int64_t batches) {
  double numbers[] = {plan.z, double(plan.rollbackEvery)};
  if (Status status =
          session.compareRanks(digestOf(std::as_bytes(std::span(numbers))),
                               "another plan for losses that jump");
      !status.ok())
    return status;
  Rollback rollback(session, plan, batches);
  if (plan.z == 0) {
    // What was left out stays so: other batches have its numbers.
    if (session.records().spikes)
      session.records().spikes->losses.clear();
    return rollback;
  }
  if (Status status = checkRoomForCopy(session); !status.ok())
    return makeError(status.code(), "spike_z: ", status.message());
  if (Status status = session.reserveReturn(); !status.ok())
    return status;
  if (!session.records().spikes)
    session.records().spikes.emplace();
  return rollback;
}

int64_t Rollback::getNextCopy(int64_t step) const {
  if (plan.z == 0)
    return std::numeric_limits<int64_t>::max();
  return (step / plan.rollbackEvery + 1) * plan.rollbackEvery;
}

Status Rollback::keep() {
  int64_t step = session->stepCount();
  bool isDue = !copy || (step != copyStep && step % plan.rollbackEvery == 0);
  if (plan.z == 0 || !isDue)
    return Status();
  auto made = session->variables().snapshotInto(session->copyToReturnTo());
  if (!made.ok())
    return made.takeStatus();
  copy.emplace(std::move(*made));
  copyStep = step;
  copyBatch = session->batchCount();
  copyLosses = session->records().spikes->losses;
  copyEvaluations = session->records().evaluation;
  returns = 0;
  return Status();
}

//===----------------------------------------------------------------------===//
// Spikes
//===----------------------------------------------------------------------===//

bool Rollback::note(const StepMetrics &metrics) {
  constexpr size_t kLosses = 64, kLeast = 16;
  if (plan.z == 0 || spike || !std::isfinite(metrics.loss))
    return false;
  std::vector<double> &losses = session->records().spikes->losses;
  double mean = 0, squares = 0;
  for (double loss : losses)
    mean += loss / double(losses.size());
  for (double loss : losses)
    squares += (loss - mean) * (loss - mean) / double(losses.size());
  double deviation = std::sqrt(squares);
  if (losses.size() >= kLeast && deviation > 0 &&
      metrics.loss > mean + plan.z * deviation) {
    spike = {metrics.step, metrics.loss, mean, deviation};
    return true;
  }
  losses.push_back(metrics.loss);
  if (losses.size() > kLosses)
    losses.erase(losses.begin());
  return false;
}

/// The batches of update `step`, of all ranks.
void Rollback::leaveOut(int64_t step) {
  std::vector<int64_t> &leftOut = session->records().spikes->leftOut;
  int64_t first = copyBatch + (step - copyStep - 1) * batches;
  std::vector<int64_t> added;
  for (int64_t i = 0; i < batches; ++i)
    added.push_back(findBatch(first + i, leftOut));
  leftOut.insert(leftOut.end(), added.begin(), added.end());
  std::ranges::sort(leftOut);
}

Status Rollback::goBack(bool quiet) {
  constexpr int kMostReturns = 3;
  Spike seen = *std::exchange(spike, std::nullopt);
  leaveOut(seen.step);
  session->records().spikes->losses = copyLosses;
  session->records().evaluation = copyEvaluations;
  if (Status status = session->returnTo(*copy); !status.ok())
    return status;
  std::string what =
      concat("the loss of update ", seen.step, " is ", seen.loss, ", and ",
             seen.mean, " +- ", seen.deviation, " before it");
  if (++returns > kMostReturns)
    return makeError(Code::Numerics, what, ", for the ", returns,
                     "th time since update ", copyStep,
                     "; the parameters are those after that one");
  if (!quiet)
    std::cerr << concat("tcc-run: note: ", what, ": returning to update ",
                        copyStep, " and leaving out its batches\n");
  return Status();
}
