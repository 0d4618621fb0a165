#include "runtime/train/Session.h"

#include "runtime/executor/Variants.h"
#include "runtime/package/BatchTree.h"
#include "runtime/package/EntryKinds.h"
#include "runtime/package/VariableKinds.h"
#include "runtime/package/VariableOffsets.h"
#include "runtime/ranks/Communicator.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

using namespace tcc;
using namespace tcc::runtime;
using format::EntryKind;
using format::Metric;
using format::StepField;

/// Whether an entry is a step, of which several may be under way.
static bool isStep(EntryKind kind) {
  return kind == EntryKind::train_step || kind == EntryKind::accumulate_step ||
         kind == EntryKind::apply || format::isOfRanks(kind);
}

/// Whether an entry takes a batch to learn from.
static bool takesBatch(EntryKind kind) {
  return kind == EntryKind::train_step || kind == EntryKind::accumulate_step ||
         kind == EntryKind::reduce_step;
}

TrainingSession::~TrainingSession() {
  // A device still works on their memory. Nobody asks how they ended.
  callback = nullptr;
  while (flightCount > 0)
    (void)finish();
}

Result<std::unique_ptr<TrainingSession>>
TrainingSession::create(std::shared_ptr<const Executable> executable,
                        const SessionOptions &options) {
  auto store = Variables::allocate(executable->program(), executable->device(),
                                   options.allocator);
  if (!store.ok())
    return store.takeStatus();
  std::unique_ptr<TrainingSession> session(
      new TrainingSession(std::move(executable), std::move(*store)));
  session->shardCount = rankCountOf(session->program->program());
  session->store.watch(session->settings().checkedVariables());
  if (options.communicator && options.communicator->size() > 1)
    session->ranks = options.communicator;
  if (Status status = session->checkRanks(); !status.ok())
    return status;
  if (Status status = session->createContexts(options); !status.ok())
    return status;
  if (Status status = session->initialize(); !status.ok())
    return status;
  return session;
}

Status TrainingSession::createContexts(const SessionOptions &options) {
  ContextOptions created;
  created.allocator = options.allocator;
  created.runner = options.runner;
  created.variables = &store;
  mayPrefault = program->device().isHost() && !options.runner &&
                options.allocator.allocate == systemAllocator().allocate;
  if (!created.runner && program->device().isHost()) {
    ownPool = std::make_unique<ThreadPool>(
        options.threads > 0 ? options.threads : defaultThreadCount());
    created.runner = ownPool.get();
    areThreadsGiven = options.threads > 0;
  }
  std::vector<const format::Entry *> signatures;
  for (const format::Entry *entry : *program->program().entries())
    if (format::isRun(entry->kind(), runsAsRanks()))
      signatures.push_back(entry);
  auto workspace =
      Workspace::create(program->device(), signatures,
                        {created.runner, options.allocator, ranks});
  if (!workspace.ok())
    return workspace.takeStatus();
  created.workspace = std::move(*workspace);
  for (const format::Entry *entry : signatures) {
    created.entry = entry->kind();
    created.variant = entry->variant();
    entries.push_back({entry, {}});
    variants.try_emplace(entry->kind(),
                         listVariants(program->program(), entry->kind()));
    for (size_t turn = 0; turn < (isStep(entry->kind()) ? depth() : 1);
         ++turn) {
      auto context = Context::create(program, created);
      if (!context.ok())
        return context.takeStatus();
      (*context)->walker().countFlops();
      entries.back().turns.push_back(std::move(*context));
    }
  }
  return counters.reserve(kMaxDepth * sizeof(Counters),
                          program->device().staging(options.allocator),
                          "counters");
}

/// Tensors of steps that are under way lie at two places.
size_t TrainingSession::depth() const {
  return program->device().isHost() ? 1 : kMaxDepth;
}

size_t TrainingSession::countCommands() const {
  size_t most = 0;
  for (const EntryContexts &entry : entries)
    most = std::max(most, entry.turns[0]->walker().commandCount());
  return most;
}

PlannedMemory TrainingSession::planned() const {
  PlannedMemory planned;
  entries.front().turns[0]->walker().addPlanned(planned);
  planned.variables = store.byteCount();
  std::vector<const format::Entry *> resident;
  for (const EntryContexts &entry : entries)
    if (entry.kind() != EntryKind::init)
      resident.push_back(entry.entry);
  planned.constants = program->constantBytes(resident);
  planned.copies = copy.size() + earlier.size();
  return planned;
}

Status TrainingSession::reserve(Memory &memory) const {
  if (memory.size() > 0 || store.byteCount() == 0)
    return Status();
  if (Status status = memory.reserve(store.byteCount(), systemAllocator(),
                                     "a copy of the variables");
      !status.ok())
    return status;
  memory.preferHugePages();
  std::memset(memory.data(), 0, memory.size());
  return Status();
}

Status TrainingSession::reserveCopy() { return reserve(copy); }

Status TrainingSession::reserveReturn() { return reserve(earlier); }

Status TrainingSession::returnTo(const Variables::Snapshot &snapshot) {
  if (Status status = restore(snapshot); !status.ok())
    return status;
  readBatchNumber();
  last = {};
  last.step = stepCount();
  return Status();
}

/// The first one of the kind.
TrainingSession::EntryContexts *TrainingSession::find(EntryKind kind) {
  auto found = std::ranges::find(entries, kind, &EntryContexts::kind);
  return found == entries.end() ? nullptr : &*found;
}

Result<TrainingSession::EntryContexts *>
TrainingSession::get(EntryKind kind, std::span<const TensorView> inputs) {
  auto found = variants.find(kind);
  if (found == variants.end())
    return makeError(Code::Usage, "package '", program->package().path(),
                     "' has no entry '", format::nameOf(kind), "'",
                     program->findEntry(EntryKind::accumulate_step)
                         ? ""
                         : ": it was not compiled for training");
  auto chosen = chooseVariant(found->second, inputs);
  if (!chosen.ok())
    return chosen.takeStatus();
  return &*std::ranges::find(entries, *chosen, &EntryContexts::entry);
}

Status TrainingSession::bind(Context &context,
                             std::span<const TensorView> inputs) {
  if (inputs.size() != context.inputCount())
    return makeError(Code::Usage, "entry '", nameOf(context.entry()),
                     "' takes ", context.inputCount(), " tensors, not ",
                     inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i)
    if (Status status = context.bindInput(i, inputs[i]); !status.ok())
      return status;
  return roundParameters();
}

/// Makes the copies that entry points read of parameters which were written
/// from outside.
Status TrainingSession::roundParameters() {
  EntryContexts *round = find(EntryKind::round_parameters);
  if (!round || !store.haveStaleCopies())
    return Status();
  Status status = round->turns[0]->run();
  if (status.ok())
    store.setCopied();
  return status;
}

Stream &TrainingSession::stream() const {
  return entries.front().turns[0]->walker().getStream();
}

Status TrainingSession::noteFault(Context &context, Status status) {
  lastBadIndex = status.ok() ? std::nullopt : context.walker().badIndex();
  return status;
}

Status TrainingSession::noteFault(const Flight &flight, Status status) {
  if (!status.ok())
    lastFailedBatch = flight.batch;
  return noteFault(flight.context(), std::move(status));
}

Status TrainingSession::run(EntryContexts &entry,
                            std::span<const TensorView> inputs) {
  Context &context = *entry.turns[0];
  if (Status status = bind(context, inputs); !status.ok())
    return status;
  Prefault ahead(firstPages(entry));
  return noteFault(context, context.run());
}

Status TrainingSession::run(EntryKind kind,
                            std::span<const TensorView> inputs) {
  Result<EntryContexts *> entry = get(kind, inputs);
  return entry.ok() ? run(**entry, inputs) : entry.takeStatus();
}

/// What the next run of an entry point uses first of all. Not before a run:
/// what no run uses takes no memory. Later runs find it there.
Prefault::Ranges TrainingSession::firstPages(EntryContexts &entry) {
  if (!mayPrefault || std::exchange(entry.hasRun, true))
    return {};
  return entry.turns[0]->walker().workingSet();
}

Status TrainingSession::initialize() {
  last = {};
  for (size_t i = 0; i < store.size(); ++i)
    if (format::isCleared(store.describe(i).kind()))
      if (Status status = store.clear(i); !status.ok())
        return status;
  if (Status status = run(EntryKind::init, {}); !status.ok())
    return status;
  if (Status status = shareVariables(); !status.ok())
    return status;
  if (Status status = startMeans(); !status.ok())
    return status;
  readBatchNumber();
  // The variables are copies; steps read few other weights, or none.
  program->package().releaseWeights();
  return Status();
}

static std::optional<TensorView> findMetricOutput(const Context &context,
                                                  Metric metric, size_t rank) {
  const auto &outputs = *context.entry().outputs();
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputs.Get(i)->name()->string_view() == nameOf(metric) &&
        outputs.Get(i)->shape()->size() == rank)
      return context.output(i);
  return std::nullopt;
}

/// NaN if the entry has none.
static double readMetric(const Context &context, Metric metric) {
  auto found = findMetricOutput(context, metric, /*rank=*/0);
  return found ? readScalar(found->dtype,
                            static_cast<const std::byte *>(found->data))
               : NAN;
}

Result<std::vector<GradientNorm>> TrainingSession::gradientNorms() const {
  std::vector<GradientNorm> norms;
  std::optional<TensorView> found;
  if (lastFinished)
    found = findMetricOutput(*lastFinished, Metric::grad_norms, /*rank=*/1);
  if (!found)
    return norms;
  for (size_t i = 0; i < store.size(); ++i)
    if (store.describe(i).kind() == format::VariableKind::parameter)
      norms.push_back({store.describe(i).name()->string_view(), 0});
  if (found->dtype != DType::f32 || norms.size() != size_t(found->shape[0]))
    return makeError(Code::BadData, "output '", nameOf(Metric::grad_norms),
                     "' has ", found->shape[0], " elements of type ",
                     traitsOf(found->dtype).name, ", expected ", norms.size(),
                     " of f32");
  std::ranges::sort(norms, {}, &GradientNorm::parameter);
  for (size_t i = 0; i < norms.size(); ++i)
    norms[i].norm = static_cast<const float *>(found->data)[i];
  return norms;
}

Status TrainingSession::finishUpdate(const Flight &flight) {
  const Context &context = flight.context();
  Counters after;
  std::memcpy(&after, counters.data() + flight.turn * sizeof(after),
              sizeof(after));
  last.step = after.iteration;
  last.loss = readMetric(context, Metric::loss);
  last.gradNorm = readMetric(context, Metric::grad_norm);
  last.lr = readMetric(context, Metric::lr);
  last.lossScale = readMetric(context, Metric::loss_scale);
  last.skipped = readMetric(context, Metric::skipped) > 0;
  if (callback)
    callback(last);
  if (after.fault == 0)
    return Status();
  return makeError(Code::Numerics, "the loss or a gradient of step ", last.step,
                   " is not finite; the parameters are those before it");
}

/// Settings may be set one by one: whether they go together is asked before the
/// next step.
Status TrainingSession::checkSettings() {
  if (!store.hasWatchedChanged())
    return Status();
  Status status = settings().check();
  if (status.ok())
    store.forgetWatchedChange();
  return status;
}

Status TrainingSession::start(EntryKind kind,
                              std::span<const TensorView> inputs) {
  return leaveOnFailure(give(kind, inputs));
}

Status TrainingSession::finish() { return leaveOnFailure(takeBack()); }

Status TrainingSession::give(EntryKind kind,
                             std::span<const TensorView> inputs) {
  if (!isStep(kind) || format::isOfRanks(kind))
    return makeError(Code::Usage, "entry '", format::nameOf(kind),
                     "' is no step");
  if (flightCount == depth())
    return makeError(Code::Usage, flightCount,
                     " steps are under way: finish one first");
  lastBadIndex.reset();
  if (Status status = checkTrainable(); !status.ok())
    return status;
  if (Status status = checkTurn(kind); !status.ok())
    return status;
  if (Status status = checkSettings(); !status.ok())
    return status;
  if (Status status = compareSettings(); !status.ok())
    return status;
  Result<EntryContexts *> step =
      get(format::entryOf(kind, runsAsRanks()), inputs);
  if (!step.ok())
    return step.takeStatus();
  Flight flight = {*step, nextTurn, batch};
  Context &context = flight.context();
  if (Status status = bind(context, inputs); !status.ok())
    return status;
  std::byte *place = counters.data() + flight.turn * sizeof(Counters);
  std::memset(place, 0, sizeof(Counters));
  Context::Download downloads[2];
  size_t count = 0;
  auto add = [&](StepField field, std::byte *to) {
    if (auto index = store.find(field))
      downloads[count++] = {to, store.address(*index), sizeof(int64_t)};
  };
  add(StepField::iteration, place + offsetof(Counters, iteration));
  add(StepField::fault, place + offsetof(Counters, fault));
  Prefault ahead(firstPages(**step));
  noteUpdate();
  if (Status status = noteFault(flight, context.start({downloads, count}));
      !status.ok())
    return status;
  advance(kind);
  updatesGiven += kind != EntryKind::accumulate_step;
  flights[flightCount++] = flight;
  nextTurn = (nextTurn + 1) % depth();
  return Status();
}

Status TrainingSession::takeBack() {
  if (flightCount == 0)
    return Status(Code::Usage, "no step is under way");
  Flight flight = popFlight();
  lastFinished = &flight.context();
  if (Status status = noteFault(flight, flight.context().finish());
      !status.ok())
    return status;
  if (flight.step->kind() == EntryKind::accumulate_step)
    return Status();
  Status status = finishUpdate(flight);
  if (status.code() == Code::Numerics)
    dropFlights();
  return status;
}

TrainingSession::Flight TrainingSession::popFlight() {
  Flight flight = flights[0];
  std::shift_left(flights, flights + flightCount--, 1);
  return flight;
}

/// Steps that were begun after one that stopped. They see its fault and update
/// nothing, but that batches are added to gradients, which an update clears. A
/// device that fails here fails the next step, too.
void TrainingSession::dropFlights() {
  bool haveGradients = false;
  while (flightCount > 0) {
    Flight flight = popFlight();
    (void)flight.context().finish();
    haveGradients |= flight.step->kind() == EntryKind::accumulate_step;
  }
  if (haveGradients)
    (void)run(format::entryOf(EntryKind::apply, runsAsRanks()), {});
  readBatchNumber();
}

Status TrainingSession::step(std::span<const TensorView> batch) {
  Status status = start(EntryKind::train_step, batch);
  return status.ok() ? finish() : std::move(status);
}

Status TrainingSession::accumulate(std::span<const TensorView> batch) {
  Status status = start(EntryKind::accumulate_step, batch);
  return status.ok() ? finish() : std::move(status);
}

Status TrainingSession::apply() {
  Status status = start(EntryKind::apply, {});
  return status.ok() ? finish() : std::move(status);
}

void TrainingSession::clearFault() {
  // A device that fails here fails the next step, too.
  if (auto index = store.find(StepField::fault))
    (void)store.write(*index, std::vector<std::byte>(store.byteCount(*index)));
  // Batches that were taken meanwhile count for nothing.
  readBatchNumber();
}

/// Adds all elements of the outputs to `sums`, one after the other.
static void addOutputs(const Context &context, std::vector<double> &sums) {
  size_t at = 0;
  for (size_t i = 0; i < context.outputCount(); ++i) {
    TensorView output = context.output(i);
    const auto *bytes = static_cast<const std::byte *>(output.data);
    size_t count = elementCount(output.shape);
    sums.resize(std::max(sums.size(), at + count));
    for (size_t j = 0; j < count; ++j)
      sums[at++] +=
          readScalar(output.dtype, bytes + j * traitsOf(output.dtype).bytes);
  }
}

Status TrainingSession::evaluate(std::span<const TensorView> batch,
                                 Evaluation &sum) {
  Result<EntryContexts *> entry = get(EntryKind::eval, batch);
  if (!entry.ok())
    return entry.takeStatus();
  if (Status status = run(**entry, batch); !status.ok())
    return status;
  const Context &context = *(*entry)->turns[0];
  double correct = readMetric(context, Metric::correct);
  sum.loss += readMetric(context, Metric::loss);
  sum.count += readMetric(context, Metric::count);
  sum.isClassifier = !std::isnan(correct);
  if (sum.isClassifier)
    sum.correct += static_cast<int64_t>(correct);
  addOutputs(context, sum.sums);
  return Status();
}

Status TrainingSession::predict(std::span<const TensorView> inputs) {
  Result<EntryContexts *> entry = get(EntryKind::predict, inputs);
  if (!entry.ok())
    return entry.takeStatus();
  lastPredicted = &**entry;
  return run(**entry, inputs);
}

Result<TensorView> TrainingSession::prediction(size_t index) {
  EntryContexts *entry =
      lastPredicted ? lastPredicted : find(EntryKind::predict);
  if (!entry)
    return get(EntryKind::predict, {}).takeStatus();
  const Context &context = *entry->turns[0];
  if (index >= context.outputCount())
    return makeError(Code::Usage, "there is no output ", index, " of ",
                     context.outputCount());
  if (!context.hasOutputs())
    return makeError(Code::Usage, "output ", index,
                     " has no value: no prediction was made");
  return context.output(index);
}

void TrainingSession::readBatchNumber() {
  updatesGiven = stepCount();
  world = std::max<int64_t>(1, read(StepField::world));
  int64_t place = read(StepField::place);
  taken = place / world;
  if (exactBatches() > 0 && place < exactBatches())
    place = format::placeOfLeaf(taken, exactBatches());
  batch = read(StepField::first) + place + read(StepField::rank);
}

int64_t TrainingSession::getStride(int64_t taken) const {
  int64_t leaves = exactBatches();
  auto placeOf = [&](int64_t leaf) {
    return leaf * world < leaves ? format::placeOfLeaf(leaf, leaves) : leaves;
  };
  return leaves ? placeOf(taken + 1) - placeOf(taken) : world;
}

/// What `kind` makes of the place where data go on.
void TrainingSession::advance(EntryKind kind) {
  int64_t leaves = exactBatches();
  if (!takesBatch(kind)) {
    taken = 0;
    return;
  }
  batch += getStride(taken);
  taken += leaves > 0;
}

std::vector<int64_t> TrainingSession::nextBatchNumbers(size_t count) const {
  std::vector<int64_t> numbers;
  int64_t share = exactBatches() / world, number = batch;
  for (int64_t i = taken; numbers.size() < count; ++i) {
    number += getStride(share ? i % share : i);
    numbers.push_back(dataNumber(number));
  }
  return numbers;
}

/// Whether an update that adds up in a tree is at `kind`.
Status TrainingSession::checkTurn(EntryKind kind) const {
  int64_t leaves = exactBatches(), share = leaves / world;
  bool isTurn = kind == EntryKind::apply ? taken == share : taken < share;
  if (leaves == 0 || (isTurn && kind != EntryKind::train_step))
    return Status();
  return makeError(Code::Usage, "an update accumulates ", share,
                   " batches of each of ", world, " ranks and then applies ",
                   "them: parallel.exact = ", leaves, "; ", taken,
                   " were accumulated");
}

Status TrainingSession::write(size_t variable,
                              std::span<const std::byte> bytes) {
  Status status = store.write(variable, bytes);
  if (store.describe(variable).field())
    readBatchNumber();
  return status;
}

int64_t TrainingSession::read(StepField field) const {
  int64_t value = 0;
  // A device that fails here fails the next step, too.
  if (auto index = store.find(field))
    (void)store.read(*index, std::as_writable_bytes(std::span(&value, 1)));
  return value;
}
