#include "tools/tcc-run/ResidentMemory.h"
#include "tools/tcc-run/Training.h"

#include <algorithm>
#include <iostream>

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;

Pace Training::averageSoFar() const {
  Pace average = paces.average();
  average.mfu = peak->shareOf(average.flops, average.seconds);
  return average;
}

/// What the process has in memory, or what is planned of a device's.
std::optional<uint64_t> Training::readMemory() const {
  if (!session->executable().device().isHost())
    return session->planned().total() - session->planned().copies;
  return readResidentBytes();
}

/// The peak is measured where somebody will see it.
Pace Training::note(ProgressLine &line, Clock::time_point before) {
  Clock::time_point now = Clock::now();
  double elapsed = std::chrono::duration<double>(now - before).count();
  Pace pace = {.samplesPerSecond = double(updates->lastSampleCount()) / elapsed,
               .exposed = updates->exposed(),
               .dataWait = batches->takeWait(),
               .seconds = elapsed,
               .flops = updates->lastFlops()};
  if (auto tokens = updates->lastTokenCount())
    pace.tokensPerSecond = double(*tokens) / elapsed;
  if (logs.areOpen())
    pace.mfu = peak->shareOf(pace.flops, elapsed);
  paces.add(pace);
  batches->warnOfSkipped(options.running.quiet);
  if (std::string problem = takeCacheProblem(plans->data); !problem.empty())
    warn(Status(Code::Io, problem));
  if (line.isDue(now))
    line.show(session->metrics(), averageSoFar(), readMemory(), now);
  return pace;
}

/// A line of the update that was made last, before any checkpoint of it; once
/// it has one, of the evaluation alone.
void Training::writeLog(const nlohmann::ordered_json &evaluation) {
  if (!unlogged)
    return logs.writeAgain(evaluation);
  unlogged->stall = checkpoints.takeStall();
  paces.addStall(unlogged->stall);
  double took = 0;
  {
    HostTimer timer(host(), HostWork::WriteLogs);
    logs.write(*unlogged, evaluation);
    took = timer.seconds();
  }
  if (traceLog)
    traceLog->add(session->metrics(), updates->tracedRuns());
  if (profile) {
    profile->addLogs(took);
    profile->add(updates->tracedRuns(), *unlogged, session->metrics().skipped);
  }
  unlogged.reset();
}

/// To the logs, after the updates that are due.
void Training::writeParameters() {
  if (!logs.areParametersDue())
    return;
  HostTimer timer(host(), HostWork::WriteLogs);
  logs.writeParameters();
  if (profile)
    profile->addLogs(timer.seconds());
}

/// Where there was one, to the state before it, which is after update `step`.
Status Training::returnFromSpike(int64_t &step) {
  if (!rollback->hasSpike())
    return Status();
  Status status = rollback->goBack(options.running.quiet);
  updates->beginAgain();
  step = session->stepCount();
  return status;
}

/// Between two updates.
void Training::explainSkipped() {
  std::string reason = skipped->explain();
  if (reason.empty() || options.running.silent)
    return;
  std::string rank =
      ranks.isFirst() ? "" : concat("rank ", session->rank(), ": ");
  std::cerr << concat("tcc-run: ", rank, "warning: ", reason, "\n");
}

bool Training::isSaveDue(int64_t step) const {
  return options.checkpointEvery > 0 && step % options.checkpointEvery == 0;
}

/// No step is under way when a checkpoint or an evaluation is begun.
int64_t Training::getNextPause(int64_t step) const {
  int64_t every = options.checkpointEvery;
  int64_t save =
      every ? std::min(lastStep, (step / every + 1) * every) : lastStep;
  return std::min({save, evaluations->getNext(step, lastStep),
                   rollback->getNextCopy(step), logs.getNextPause(step)});
}

/// A checkpoint that all ranks have written gets its name.
Status Training::look() {
  Result<bool> areReady = requests.look(checkpoints.isReady());
  if (!areReady.ok())
    return areReady.takeStatus();
  return checkpoints.isActive() && *areReady ? checkpoints.advance() : Status();
}

/// Between two batches of an evaluation: whether it goes on.
Result<bool> Training::answerBetween() {
  if (Status status = look(); !status.ok())
    return status;
  if (requests.ends() || !requests.saves())
    return !requests.ends();
  requests.noteSaved();
  writeLog(nullptr);
  Status saved = evaluations->interrupt([&] { return checkpoints.save(); });
  if (!saved.ok())
    return saved;
  return true;
}

Result<bool> Training::runEvaluation() {
  HostTimer timer(host(), HostWork::Evaluate);
  Result<bool> ended = evaluations->run([&] { return answerBetween(); });
  if (profile)
    profile->addEvaluation(timer.seconds());
  return ended;
}

/// After the update that was made last, if it is time, unless the run is to end
/// before its last update.
Status Training::evaluate() {
  int64_t step = session->stepCount();
  bool endsEarly = step < lastStep && requests.ends();
  if (endsEarly || !evaluations->isDue(step, lastStep))
    return Status();
  requests.changeUnits();
  Result<bool> ended = runEvaluation();
  requests.changeUnits();
  if (!ended.ok())
    return ended.takeStatus();
  if (!*ended)
    return Status();
  if (evaluations->isBest() && !options.retention.keepBest.empty())
    requests.askToSave();
  if (evaluations->isOver())
    requests.askToEnd("eval.patience");
  return Status();
}

/// A run that was stopped in an evaluation goes on with it.
Status Training::evaluateIfMissed() {
  if (!evaluations->isMissed(firstStep, lastStep))
    return Status();
  if (Status status = evaluate(); !status.ok())
    return status;
  writeLog(evaluations->valuesOf(firstStep));
  if (requests.ends() || !requests.saves())
    return Status();
  requests.noteSaved();
  return checkpoints.save();
}

/// The first failure ends the steps. What is not finite leaves the session
/// whole: it is saved like any other.
Status Training::trainSteps() {
  ProgressLine line(firstStep, lastStep, options.running.quiet);
  if (options.keepsAnything())
    requests.listen(ranks.communicator.get());
  if (Status status = evaluateIfMissed(); !status.ok() || requests.ends())
    return status;
  if (Status status = rollback->keep(); !status.ok())
    return status;
  int64_t end = getNextPause(firstStep);
  if ((options.profile || options.diagnoses) && ranks.isFirst())
    profile.emplace(lastStep - firstStep, *batches);
  if (traceLog)
    traceLog->begin();
  for (int64_t step = firstStep; step < lastStep;) {
    Clock::time_point before = Clock::now();
    if (mayPauseTrace)
      trace->pause(!traceLog->keepsNext());
    Status status = updates->make(end);
    if (!status.ok() && status.code() != Code::Numerics)
      return status;
    unlogged = note(line, before);
    step = session->metrics().step;
    if (status.ok()) {
      skipped->note();
      unlogged->isSpike = rollback->note(session->metrics());
    }
    Status looked = status.ok() ? look() : Status();
    bool isPause = step >= end;
    if (status.ok() && looked.ok() && isPause && !rollback->hasSpike()) {
      line.clear();
      looked = evaluate();
    }
    writeLog(isPause ? evaluations->valuesOf(step) : nullptr);
    if (!status.ok() || !looked.ok())
      return status.ok() ? std::move(looked) : std::move(status);
    if (requests.any() || skipped->hasNoted() || rollback->hasSpike())
      end = updates->getNextPause();
    if (step < end)
      continue;
    explainSkipped();
    if (!rollback->hasSpike())
      writeParameters();
    if (Status status = returnFromSpike(step); !status.ok())
      return status;
    bool isDone = step == lastStep && !evaluations->isMissed(step, lastStep);
    if (isDone)
      requests.forgetEnd();
    if (requests.ends() || step == lastStep)
      return Status();
    if (requests.saves() || isSaveDue(step))
      if (Status saved = checkpoints.save(); !saved.ok())
        return saved;
    requests.noteSaved();
    if (Status status = rollback->keep(); !status.ok())
      return status;
    end = getNextPause(step);
  }
  return Status();
}
