#include "runtime/base/OutputFile.h"
#include "runtime/package/Digest.h"
#include "runtime/train/Checkpoint.h"
#include "runtime/train/Manifest.h"
#include "tools/tcc-run/FindRate.h"
#include "tools/tcc-run/Json.h"
#include "tools/tcc-run/RunResult.h"
#include "tools/tcc-run/Session.h"
#include "tools/tcc-run/TrainSession.h"
#include "tools/tcc-run/Training.h"
#include "tools/tcc-run/trace/TraceFile.h"

#include <algorithm>
#include <filesystem>
#include <iomanip>

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;

/// A run goes on with the package that it began with, and a new one begins
/// where there is none.
Status Training::checkRun() const {
  if (options.runFolder.empty())
    return Status();
  if (Status status = checkPackage(options.runFolder, options.run,
                                   options.running.package, *session);
      !status.ok())
    return status;
  Status status;
  if (ranks.isFirst() && !goesOn() &&
      !listCheckpoints(options.data.checkpointDir).empty())
    status =
        makeError(Code::Usage, "'", options.data.checkpointDir,
                  "' has checkpoints: go on with the run in '",
                  options.runFolder, "' by --resume, or take another folder");
  return ranks.communicator ? ranks.communicator->agree(status)
                            : std::move(status);
}

/// A run whose disk is full goes on with what is recorded.
Status Training::recordRun() {
  if (options.runFolder.empty() || !ranks.isFirst())
    return Status();
  Status status = writeRunRecord(options.runFolder, options.run, *session);
  if (options.run.packageDigest.empty())
    return status;
  warn(status);
  return Status();
}

Status Training::resume() {
  Result<std::string> newest =
      restoreFrom(*session, options.data.checkpointDir, /*choice=*/{},
                  options.running.quiet, options.resumesIfAny);
  if (!newest.ok())
    return newest.takeStatus();
  if (newest->empty())
    return Status();
  // Whoever resumes has seen why the run stopped.
  session->clearFault();
  if (!options.running.quiet)
    std::cerr << concat("tcc-run: resuming from ", *newest, "\n");
  return Status();
}

Status Training::readPlans() {
  auto ofRecipe = Plans::open(session->executable().program());
  if (!ofRecipe.ok())
    return ofRecipe.takeStatus();
  plans.emplace(std::move(*ofRecipe));
  return plans->use(options);
}

SavingOptions Training::makeSavingOptions() const {
  SavingOptions saving = {options.data.checkpointDir, options.checkpointEvery,
                          options.retention, options.syncCheckpoints};
  auto metrics = listMetrics(session->executable().program());
  if (const EvaluationMetric *best =
          findMetric(metrics, plans->evaluation.best))
    saving.retention.bestIsLargest = best->rises;
  return saving;
}

Status Training::setSeed() {
  if (!options.seed)
    return Status();
  return session->settings().set("seed", std::to_string(*options.seed));
}

/// The number of updates: --steps, --epochs or the recipe's `steps`.
Status Training::chooseLength() {
  Result<int64_t> batchesOfUpdate =
      getAccumulation(*session, batches->loader().order().batchSize());
  if (!batchesOfUpdate.ok())
    return batchesOfUpdate.takeStatus();
  int64_t accumulation = *batchesOfUpdate;
  updates.emplace(*session, *batches, accumulation);
  skipped.emplace(*session, *updates);
  firstStep = session->stepCount();
  lastStep = options.findsRate ? 1 : options.steps;
  if (!lastStep && options.epochs) {
    int64_t count = 0;
    if (__builtin_mul_overflow(options.epochs,
                               batches->loader().order().batchesPerEpoch(),
                               &count))
      return makeError(Code::Usage, "--epochs is ", options.epochs,
                       ", which is too many batches");
    int64_t batchesOfAll = accumulation * session->rankCount();
    // Other ranks may have taken some: what is left is counted in batches.
    int64_t left = std::max<int64_t>(count - session->batchCount(), 0);
    lastStep = firstStep + left / batchesOfAll;
    if (lastStep == 0)
      return makeError(Code::Usage, "--epochs ", options.epochs, " is ", count,
                       " batches, an update takes ", batchesOfAll);
  }
  Settings settings = session->settings();
  if (!lastStep && settings.find("steps")) {
    Result<double> steps = settings.get("steps");
    if (!steps.ok())
      return steps.takeStatus();
    lastStep = static_cast<int64_t>(*steps);
  }
  if (lastStep > 0)
    return Status();
  return Status(Code::Usage, "how long? give --steps or --epochs");
}

/// Ranks that differ here would take other batches than they think, or wait for
/// one that has ended.
Status Training::compareRanks() const {
  const BatchOrder &order = batches->loader().order();
  int64_t numbers[] = {order.sampleCount(), order.batchesPerEpoch(),
                       updates->batchCount(), lastStep};
  return session->compareRanks(digestOf(std::as_bytes(std::span(numbers))),
                               "another number of samples or steps");
}

/// What fails without an end to the run.
void Training::warn(const Status &status) const {
  if (!status.ok() && !options.running.quiet)
    std::cerr << concat("tcc-run: warning: ", status.message(), "\n");
}

/// What was traced so far, whatever became of the run. A trace of an earlier
/// run stays as it is where no update was made.
Status Training::writeTraceFile() {
  if (!traceLog)
    return Status();
  traceLog->end();
  if (traceLog->updates().empty()) {
    warn(makeError(Code::Usage, "no update was made: '", options.traceFile,
                   "' is not written"));
    return Status();
  }
  if (traceLog->every() > 1 && !options.running.quiet)
    std::cerr << concat("tcc-run: note: the trace has one of each ",
                        traceLog->every(),
                        " updates: all of them are more than ",
                        TraceLog::kMostEvents, " events\n");
  return writeTrace(*traceLog, *session, options.traceFile);
}

/// What is not trained on, and what is not kept.
void Training::sayWhatIsLost() const {
  if (options.running.quiet)
    return;
  noteLeftOut(batches->loader());
  if (!options.keepsAnything())
    std::cerr << "tcc-run: warning: nothing of what is learned will be kept: "
                 "give --checkpoint-dir or --export\n";
}

/// The first of several ranks says how long it waits for others.
Status Training::beginTrace() {
  bool saysWaits = session->rankCount() > 1 && ranks.isFirst();
  bool isLookedAt = (options.profile || options.diagnoses) && ranks.isFirst();
  if (!saysWaits && !isLookedAt && !traceLog)
    return Status();
  trace.emplace(session->stream().laneCount(),
                std::max(Trace::kCapacity, session->countCommands()));
  // A device that works ahead begins runs of later updates, too.
  mayPauseTrace = !saysWaits && !isLookedAt && session->depth() == 1;
  if (!isLookedAt)
    trace->joinLaunches();
  updates->trace(*trace, isLookedAt || traceLog != nullptr, host());
  if (traceLog)
    batches->trace(traceLog->host());
  return session->stream().trace(&*trace);
}

void Training::endProfile() {
  if (!profile)
    return;
  profile->end(*session);
  if (profile->isEmpty())
    return;
  RunFigures figures = profile->measure(ranks.cpus);
  figures.areCheckpointsSynced = options.syncCheckpoints;
  diagnosis = diagnose(figures);
}

/// Adds the profile, the diagnosis, or both, of a run that has them.
void Training::addFindings(nlohmann::ordered_json &document, bool profiles,
                           bool diagnoses) const {
  if (profiles && profile)
    document["profile"] = profile->describe();
  if (diagnoses && diagnosis)
    document["diagnosis"] = tools::describe(*diagnosis);
}

nlohmann::ordered_json Training::describeResult() const {
  int64_t steps = session->stepCount();
  Pace average = averageSoFar();
  nlohmann::ordered_json document = {
      {"schema_version", 1},
      {"steps", steps},
      {"loss", session->metrics().loss},
      {"samples_per_s", average.samplesPerSecond},
      {"memory_bytes", session->planned().total()},
      {"checkpoint", nullptr}};
  if (const auto &record = session->records().evaluation)
    document["evaluation"] = describe(*record);
  if (average.tokensPerSecond)
    document["tokens_per_s"] = *average.tokensPerSecond;
  if (average.mfu) {
    document["mfu"] = *average.mfu;
    document["peak_flops_per_s"] = *peak->flops();
  }
  if (average.exposed)
    document["exposed_communication_s"] = *average.exposed;
  if (steps > firstStep)
    document.update({{"data_wait_s", average.dataWait},
                     {"flops_per_update", average.flops}});
  if (double share = batches->loader().order().paddingShare(); share > 0)
    document["padding"] = share;
  if (auto skipped = batches->skippedCount())
    document["skipped_samples"] = *skipped;
  document.update(describeCaches(plans->data));
  if (!checkpoints.last().empty())
    document["checkpoint"] = checkpoints.last();
  if (std::string end = requests.describeEnd(); !end.empty())
    document["stopped_by"] = end;
  return document;
}

/// Without a step there is no loss.
void Training::printResult() const {
  int64_t steps = session->stepCount();
  std::cout << steps << " steps, ";
  if (steps == firstStep)
    std::cout << "nothing was left to do";
  else
    std::cout << "loss " << std::setprecision(6) << session->metrics().loss
              << ", " << std::llround(paces.average().samplesPerSecond)
              << " samples/s";
  if (std::string waits = paces.describeWaits(); !waits.empty())
    std::cout << ", " << waits;
  if (int64_t skipped = batches->skippedCount().value_or(0))
    std::cout << ", " << skipped << " damaged samples skipped";
  if (!checkpoints.last().empty())
    std::cout << ", checkpoint " << checkpoints.last();
  std::cout << '\n';
}

void Training::noteEnd() const {
  std::string end = requests.describeEnd();
  if (!end.empty() && !options.running.quiet)
    std::cerr << concat("tcc-run: note: ", end, ": stopped after update ",
                        session->stepCount(), " of ", lastStep, "\n");
}

/// What is learned goes before what was looked at.
Status Training::keepResult() {
  Status status = checkpoints.saveLast();
  if (status.ok() && ranks.isFirst() && !options.exported.file.empty())
    status = exportTo(options.exported, *session);
  return status;
}

void Training::printEnd() const {
  if (options.running.json) {
    nlohmann::ordered_json document = describeResult();
    addFindings(document, options.profile, options.diagnoses);
    printJson(document);
  } else {
    printResult();
  }
  if (options.profile && profile && !options.running.json)
    profile->print();
  if (options.diagnoses && !options.running.json)
    std::cout << (diagnosis ? "\n" + print(*diagnosis)
                            : "no update was diagnosed\n");
  noteEnd();
}

nlohmann::ordered_json Training::describeEnd(const Status &status) const {
  nlohmann::ordered_json document = {{"schema_version", 1}};
  if (status.ok() || status.code() == Code::Numerics)
    document = describeResult();
  // Whatever was asked to be printed.
  addFindings(document, profile && !profile->isEmpty(), /*diagnoses=*/true);
  document["first_step"] = firstStep;
  document["last_step"] = lastStep;
  document["code"] = static_cast<int>(status.code());
  document["error"] = status.message();
  return document;
}

/// Where nothing is left to do, what is recorded of the end stays.
Status Training::beginLogs() {
  isLogged = !options.logDir.empty() && firstStep < lastStep;
  if (isLogged)
    removeRunResult(options.logDir);
  return logs.open(options, *session, goesOn());
}

void Training::recordEnd(const Status &status) const {
  if (isLogged)
    warn(writeRunResult(options.logDir, describeEnd(status)));
}

/// Whatever became of the steps, what they did is traced.
Status Training::end(Status trained) {
  bool isWhole = trained.ok() || trained.code() == Code::Numerics;
  Status kept = isWhole ? keepResult() : Status();
  Status traced = writeTraceFile();
  if (isWhole && kept.ok() && traced.ok() && ranks.isFirst())
    printEnd();
  if (!trained.ok() || !kept.ok()) {
    warn(traced);
    return trained.ok() ? std::move(kept) : std::move(trained);
  }
  return traced;
}

Status Training::run() {
  auto opened =
      openTraining(options.running, options.data, ranks.communicator.get());
  if (!opened.ok())
    return opened.takeStatus();
  session = std::move(*opened);
  peak.emplace(*session, ranks.cpus);
  if (Status status = session->checkTrainable(); !status.ok())
    return status;
  if (Status status = readPlans(); !status.ok())
    return status;
  if (Status status = checkpoints.open(*session, makeSavingOptions());
      !status.ok())
    return status;
  if (Status status = checkRun(); !status.ok())
    return status;
  if (goesOn())
    if (Status status = resume(); !status.ok())
      return status;
  for (const std::string &setting : options.settings)
    if (Status status =
            Plans::have(setting) ? Status() : applySetting(*session, setting);
        !status.ok())
      return status;
  if (Status status = setSeed(); !status.ok())
    return status;
  auto data =
      Batches::open(*session, format::EntryKind::accumulate_step, plans->data,
                    session->read(format::StepField::seed), !options.noShuffle);
  if (!data.ok())
    return data.takeStatus();
  batches.emplace(std::move(*data));
  if (Status status =
          recordData(*session, batches->loader(), options.running.quiet);
      !status.ok())
    return status;
  if (Status status = chooseLength(); !status.ok())
    return status;
  if (Status status = compareRanks(); !status.ok())
    return status;
  if (options.findsRate)
    return findRate(*session, *updates, options);
  auto evaluated = plans->dataOfEvaluations();
  if (!evaluated.ok())
    return evaluated.takeStatus();
  auto evaluating = Evaluations::open(*session, plans->evaluation, *evaluated,
                                      options.running.quiet);
  if (!evaluating.ok())
    return evaluating.takeStatus();
  evaluations.emplace(std::move(*evaluating));
  auto returning =
      Rollback::open(*session, plans->spikes, updates->batchCount());
  if (!returning.ok())
    return returning.takeStatus();
  rollback.emplace(std::move(*returning));
  // Before anything is written.
  if (ranks.isFirst())
    if (Status status = checkTarget(options.exported, *session); !status.ok())
      return status;
  if (traceLog)
    if (auto file = OutputFile::create(options.traceFile); !file.ok())
      return file.takeStatus();
  if (Status status = session->settings().check(); !status.ok())
    return status;
  sayWhatIsLost();
  if (Status status = recordRun(); !status.ok())
    return status;
  if (Status status = beginLogs(); !status.ok())
    return status;
  if (Status status = beginTrace(); !status.ok())
    return status;
  Status trained = trainSteps();
  endProfile();
  logs.close();
  return end(std::move(trained));
}

/// Others than the first rank read and compute; they write nothing.
static TrainOptions optionsOfRank(const Ranks &ranks, TrainOptions options) {
  options.running = ofRank(ranks, options.running);
  if (ranks.isFirst())
    return options;
  options.logDir.clear();
  options.tensorBoardDir.clear();
  if (!options.traceFile.empty())
    options.traceFile = tracePathOf(options.traceFile, ranks.launch.rank);
  return options;
}

/// The flags that decide which steps a rank makes, of which batches, and when
/// ranks compare their variables.
static std::string describeFlags(const TrainOptions &options) {
  return concat(
      "train ", options.resume, options.resumesIfAny,
      !options.data.init.empty(), options.findsRate, options.noShuffle, " ",
      options.steps, " ", options.epochs, " ", options.seed.value_or(-1), " ",
      options.data.checkpointDir.empty(), options.exported.file.empty(),
      options.checkpointEvery, " ", options.histogramsEvery);
}

int tools::trainCommand(const TrainOptions &options) {
  Ranks ranks;
  Status status = joinRanks(options.running, ranks);
  removeReports(ranks, options.logDir);
  TrainOptions own = optionsOfRank(ranks, options);
  if (status.ok())
    status = compareFlags(ranks, describeFlags(options));
  Training training(own, ranks);
  if (status.ok())
    status = training.run();
  status = endTogether(ranks, std::move(status));
  training.recordEnd(status);
  int code = reportOfRank(status, ranks, options.logDir);
  return code == 0 && training.stoppedBy() ? kSignalled + training.stoppedBy()
                                           : code;
}
