//===- Session.h - Trains a model in steps ----------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_TRAIN_SESSION_H
#define TCC_RUNTIME_TRAIN_SESSION_H

#include "runtime/base/Prefault.h"
#include "runtime/executor/Context.h"
#include "runtime/package/Format.h"
#include "runtime/train/NonFinite.h"
#include "runtime/train/Records.h"
#include "runtime/train/Settings.h"

#include <cmath>
#include <functional>
#include <map>

namespace tcc::runtime {

struct SessionOptions {
  int threads = 0;              ///< 0: defaultThreadCount()
  TaskRunner *runner = nullptr; ///< replaces the own pool; outlives the session
  Allocator allocator = systemAllocator();
  /// Connects the ranks that train together, with sessions of the same package;
  /// null for one rank. Outlives the session, which alone uses it in its calls.
  Communicator *communicator = nullptr;
};

/// What an update did. A value that the package does not report is NaN.
struct StepMetrics {
  int64_t step = 0; ///< updates so far, skipped ones included
  double loss = NAN;
  double gradNorm = NAN; ///< before clipping
  double lr = NAN;
  double lossScale = NAN;
  bool skipped = false; ///< nothing was changed
};

/// The norm of a parameter's gradient. The session has the parameter's name.
struct GradientNorm {
  std::string_view parameter;
  float norm;
};

/// Sums over the batches of an evaluation.
struct Evaluation {
  double loss = 0;     ///< of all targets, not their mean
  double count = 0;    ///< valid targets
  int64_t correct = 0; ///< of them; only if `isClassifier`
  bool isClassifier = false;
  /// The sums of all outputs of `eval`, for its metrics (Metrics.h); empty
  /// before the first batch.
  std::vector<double> sums = {};
};

/// The variables of a training package and the entry points that read and
/// update them. They share one arena and one pool. One thread at a time; any
/// number of sessions may share an Executable.
///
/// Several ranks, each with a session, make the same calls of create,
/// initialize, accumulate, step, apply, start, finish, shareVariables,
/// compareVariables and addUp in the same order: each takes batches of its own,
/// and the update is that of all of them. All have the same variables then, but
/// which rank they are. A
/// rank that is gone is an error (Code::Peer). After any error but
/// Code::Numerics, which all have, the ranks are no longer together.
class TrainingSession {
public:
  /// Allocates everything that steps need and runs `init`. Code::Usage where
  /// ranks have other packages, or one that was compiled for one rank.
  static Result<std::unique_ptr<TrainingSession>>
  create(std::shared_ptr<const Executable> executable,
         const SessionOptions &options = {});
  ~TrainingSession();

  const Executable &executable() const { return *program; }

  /// Sets all variables to what the package begins with.
  Status initialize();

  /// One update from one batch: tensors in the order of the entry's inputs. A
  /// loss or gradient that is not finite is an error (Code::Numerics) where the
  /// recipe says stop: this update and all later ones change no parameter until
  /// `clearFault`. After another error variables may be updated in part.
  Status step(std::span<const TensorView> batch);
  /// One update from several batches: accumulate each, then apply. Where
  /// `exactBatches` says how many those of all ranks are, there is no `step`,
  /// and others are an error (Code::Usage).
  Status accumulate(std::span<const TensorView> batch);
  Status apply();
  void clearFault();
  /// After an update that found what is not finite: looks where a batch of it
  /// stopped being finite. Runs it again launch by launch, and `healthy`, a
  /// batch of another update or none, to know what is never finite in this
  /// model; then the update itself, unless ranks share it. Changes nothing.
  /// Nothing is found where the batch has finite results now.
  /// Code::OutOfMemory where there is no room for a copy of the variables.
  Result<std::optional<NonFinite>>
  findNonFinite(std::span<const TensorView> batch,
                std::span<const TensorView> healthy);

  /// The same in two parts, so that a device takes the next batch while it
  /// works on one: `start` gives it a step, and what the batch is made of may
  /// change once it returns; `finish` waits for the oldest of them and returns
  /// what step, accumulate or apply would. Nothing else is called while one is
  /// under way. After Code::Numerics none is: what was begun since then is
  /// over, changed nothing and does not count.
  /// A step is train_step, accumulate_step or apply; of several ranks the first
  /// one and the last are reduce_step, which adds to what was accumulated, and
  /// reduce_apply, which with `exactBatches` one rank runs, too. The first one
  /// fails where ranks have other settings.
  Status start(format::EntryKind step, std::span<const TensorView> batch);
  Status finish();
  /// How many may be under way, and how many are.
  size_t depth() const;
  size_t underWay() const { return flightCount; }

  /// Commands of the entry point that has most of them, those of loops once.
  size_t countCommands() const;
  /// Whether a step was finished.
  bool hasStepped() const { return lastFinished != nullptr; }
  /// The context of the step that was finished last, which counts flops.
  Context &lastContext() { return *lastFinished; }

  /// Adds the loss of a batch to `sum`; changes nothing.
  Status evaluate(std::span<const TensorView> batch, Evaluation &sum);
  /// Puts the running means of parameters in the place of these, and these in
  /// theirs: what is evaluated, predicted or exported between two calls is of
  /// the means. No step comes between them. Code::Usage where the package has
  /// no means, or has them in parts or with other types. All ranks may call it.
  Status exchangeMeans();
  /// Whether it can.
  Status checkMeans() const;
  /// What checkpoints say of the run beside its variables.
  Records &records() { return kept; }
  const Records &records() const { return kept; }
  /// Gives all ranks the running statistics of rank 0, which updates change by
  /// the batches of each.
  Status shareBuffers();
  /// Makes `sum` that of all ranks, each of which evaluated other batches.
  Status addUp(Evaluation &sum);
  /// Gives all ranks the variables of rank 0, after that one restored or
  /// changed some; `initialize` does it itself.
  Status shareVariables();
  /// Gives all ranks the text of rank 0.
  Status shareText(std::string &text) const;
  /// Fails with Code::Usage at all ranks where one has another digest than rank
  /// 0 has: "rank R has `what` than rank 0".
  Status compareRanks(const format::Digest &digest, const char *what) const;
  /// Fails with Code::Peer at all ranks where a variable that updates leave the
  /// same at all of them is not: as after a fault of memory. It names the first
  /// one and whose are others than those of rank 0.
  Status compareVariables() const;
  /// Fails with Code::Usage at all ranks where the package divides variables
  /// among another number of them. It is not trained then; it evaluates.
  Status checkTrainable() const;

  /// Runs the model itself.
  Status predict(std::span<const TensorView> inputs);
  /// Output `index` of the last call of `predict`.
  Result<TensorView> prediction(size_t index);

  /// Goes back to what the variables were: `snapshot` is of this session.
  /// Between two updates.
  Status returnTo(const Variables::Snapshot &snapshot);

  /// Memory of the host for a copy of all variables, kept from then on, and
  /// part of what is planned. The first call touches all of it.
  Status reserveCopy();
  /// Another one, to which a run returns: see `returnTo`.
  Status reserveReturn();
  Memory &copyToReturnTo() { return earlier; }
  Memory &copyOfVariables() { return copy; }

  /// What all of it is given to.
  Stream &stream() const;
  /// The metrics of the last update.
  const StepMetrics &metrics() const { return last; }
  /// What the norms of gradients were in the last update, before clipping, by
  /// the order of the parameters' names. Empty before the first update of the
  /// session and where the package does not tell them. Code::BadData where it
  /// tells another number of them than it has parameters.
  Result<std::vector<GradientNorm>> gradientNorms() const;
  /// Called after each update, in the thread that made it.
  void setCallback(std::function<void(const StepMetrics &)> function) {
    callback = std::move(function);
  }
  /// Updates so far, skipped ones included.
  int64_t stepCount() const { return read(format::StepField::iteration); }
  /// The number of the batch that `step` or `accumulate` takes next, among all
  /// that ranks train on: the place where data go on.
  /// What the run leaves out is passed over.
  int64_t batchNumber() const { return dataNumber(batch); }
  /// The numbers of the batches after batchNumber(), in this rank's order.
  std::vector<int64_t> nextBatchNumbers(size_t count) const;
  /// Reads it again, after variables of the step were written from outside.
  void readBatchNumber();
  /// Writes which rank this is, and of how many, where variables say otherwise:
  /// those of a checkpoint are of the ranks that wrote it.
  Status writeRank();
  int rank() const;
  int rankCount() const;
  /// Null for one rank.
  Communicator *communicator() const { return ranks; }
  /// Batches of an update of all ranks, which the package adds up in one tree
  /// (Program.exact); 0: any number.
  int64_t exactBatches() const { return program->program().exact(); }
  /// The index out of range that made the last step, evaluation or prediction
  /// fail, if one did.
  std::optional<int64_t> badIndex() const { return lastBadIndex; }
  /// The number of the batch of the last step that failed.
  int64_t failedBatch() const { return dataNumber(lastFailedBatch); }
  /// Batches that all ranks have taken together: each rank has the same.
  int64_t batchCount() const {
    return read(format::StepField::first) + read(format::StepField::place);
  }
  /// Writes a variable from outside; of as many bytes as it has.
  Status write(size_t variable, std::span<const std::byte> bytes);
  /// A field of the step that is an integer; 0 if there is none.
  int64_t read(format::StepField field) const;

  /// So many of the session's own threads take no part in later steps: their
  /// CPUs are for others. None where their number was given. Results are the
  /// same.
  void spareThreads(int count) {
    if (ownPool && !areThreadsGiven)
      ownPool->limit(ownPool->threads() - count);
  }

  /// What steps, evaluations and predictions need, and not `init`.
  PlannedMemory planned() const;

  /// What changes at run time, between steps. A step that finds values which do
  /// not go together fails (Code::Usage) and changes nothing.
  Settings settings() { return {program->program(), store}; }
  Variables &variables() { return store; }
  const Variables &variables() const { return store; }

private:
  static constexpr size_t kMaxDepth = 2;

  /// An entry point and its contexts: of a step one for each turn, so that as
  /// many may be under way, of others one.
  struct EntryContexts {
    const format::Entry *entry;
    std::vector<std::unique_ptr<Context>> turns;
    bool hasRun = false;

    format::EntryKind kind() const { return entry->kind(); }
  };

  /// Fields after a step, in memory that the device copies to.
  struct Counters {
    int64_t iteration, fault;
  };
  /// A step under way; its context and counters are those of its turn.
  struct Flight {
    EntryContexts *step;
    size_t turn;
    int64_t batch; ///< its number, if the step takes one

    Context &context() const { return *step->turns[turn]; }
  };

  TrainingSession(std::shared_ptr<const Executable> executable, Variables store)
      : program(std::move(executable)), store(std::move(store)) {}

  int64_t dataNumber(int64_t number) const {
    return kept.spikes ? findBatch(number, kept.spikes->leftOut) : number;
  }
  Status createContexts(const SessionOptions &options);
  Status checkRanks() const;
  Status checkShare() const;
  Status checkTurn(format::EntryKind kind) const;
  bool runsAsRanks() const { return ranks || exactBatches() > 0; }
  /// How far the data go on with the batch after `taken` of an update.
  int64_t getStride(int64_t taken) const;
  void advance(format::EntryKind kind);
  Status leaveOnFailure(Status status);
  void noteUpdate() const;
  Status shareVariable(size_t index);
  Status give(format::EntryKind step, std::span<const TensorView> batch);
  Status takeBack();
  Status compareSettings();
  Status writeField(format::StepField field, int64_t value);
  Status reserve(Memory &memory) const;
  Status startMeans();
  Status observe(EntryContexts &step, std::span<const TensorView> inputs,
                 LaunchObserver &observer);
  Status restore(const Variables::Snapshot &snapshot);
  Result<std::optional<NonFinite>>
  findKernel(std::span<const TensorView> batch,
             std::span<const TensorView> healthy,
             const Variables::Snapshot &before);
  EntryContexts *find(format::EntryKind kind);
  /// The variant of a kind that takes these tensors.
  Result<EntryContexts *> get(format::EntryKind kind,
                              std::span<const TensorView> inputs);
  Status bind(Context &context, std::span<const TensorView> inputs);
  Status run(EntryContexts &entry, std::span<const TensorView> inputs);
  Status run(format::EntryKind kind, std::span<const TensorView> inputs);
  Prefault::Ranges firstPages(EntryContexts &entry);
  Status roundParameters();
  Status checkSettings();
  Status noteFault(Context &context, Status status);
  Status noteFault(const Flight &flight, Status status);
  Status finishUpdate(const Flight &flight);
  Flight popFlight();
  void dropFlights();

  std::shared_ptr<const Executable> program;
  Variables store;
  Communicator *ranks = nullptr; ///< null for one
  uint32_t shardCount = 0;       ///< ranks that variables are split over; or 0
  bool areSettingsCompared = false;
  std::unique_ptr<ThreadPool> ownPool;
  bool areThreadsGiven = false;
  Memory copy;     ///< of the variables; empty before reserveCopy
  Memory earlier;  ///< likewise, before reserveReturn
  Memory counters; ///< for each turn; a context's work may write them
  std::vector<EntryContexts> entries; ///< all but `prepare`
  std::map<format::EntryKind, std::vector<const format::Entry *>> variants;
  Flight flights[kMaxDepth]; ///< the oldest first
  size_t flightCount = 0;
  size_t nextTurn = 0;
  Context *lastFinished = nullptr;        ///< null before the first step
  EntryContexts *lastPredicted = nullptr; ///< null before the first prediction
  std::function<void(const StepMetrics &)> callback;
  StepMetrics last;
  Records kept;
  // As the step's fields say after what is under way.
  int64_t batch = 0; ///< see batchNumber
  int64_t taken = 0; ///< batches of this rank since the last update
  int64_t world = 1;
  int64_t updatesGiven = 0; ///< likewise: updates so far
  std::optional<int64_t> lastBadIndex;
  int64_t lastFailedBatch = 0;
  bool mayPrefault = false; ///< memory and threads are not the caller's
};

} // namespace tcc::runtime

#endif // TCC_RUNTIME_TRAIN_SESSION_H
