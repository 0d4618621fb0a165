#include "runtime/train/Session.h"

#include <cstring>

using namespace tcc;
using namespace tcc::runtime;

const char *const TrainingSession::kEntryNames[EntryCount] = {
    "init", "train_step", "accumulate_step", "apply", "eval", "predict"};

/// The element of a tensor that has one.
static double readScalar(DType dtype, const std::byte *data) {
  auto as = [&](auto value) {
    std::memcpy(&value, data, sizeof(value));
    return static_cast<double>(value);
  };
  switch (dtype) {
  case DType::f64:
    return as(double());
  case DType::f32:
    return as(float());
  case DType::i64:
    return as(int64_t());
  case DType::i32:
    return as(int32_t());
  case DType::boolean:
  case DType::u8:
    return as(uint8_t());
  default:
    return NAN;
  }
}

TrainingSession::~TrainingSession() = default;

Result<std::unique_ptr<TrainingSession>>
TrainingSession::create(std::shared_ptr<const Executable> executable,
                        const SessionOptions &options) {
  auto store = Variables::allocate(executable->program(), executable->device(),
                                   options.allocator);
  if (!store.ok())
    return store.takeStatus();
  std::unique_ptr<TrainingSession> session(
      new TrainingSession(std::move(executable), std::move(*store)));
  if (Status status = session->createContexts(options); !status.ok())
    return status;
  if (Status status = session->initialize(); !status.ok())
    return status;
  return session;
}

const format::Entry *TrainingSession::findEntry(std::string_view name) const {
  return program->findEntry(name);
}

Status TrainingSession::createContexts(const SessionOptions &options) {
  ContextOptions created;
  created.allocator = options.allocator;
  created.runner = options.runner;
  created.variables = &store;
  if (!created.runner && program->device().isHost()) {
    ownPool = std::make_unique<ThreadPool>(
        options.threads > 0 ? options.threads : defaultThreadCount());
    created.runner = ownPool.get();
  }
  std::vector<const format::Entry *> entries;
  for (const char *name : kEntryNames)
    if (const format::Entry *entry = findEntry(name))
      entries.push_back(entry);
  auto workspace = Workspace::create(program->device(), entries,
                                     {created.runner, options.allocator});
  if (!workspace.ok())
    return workspace.takeStatus();
  created.workspace = std::move(*workspace);
  for (int kind = 0; kind < EntryCount; ++kind) {
    if (!findEntry(kEntryNames[kind]))
      continue;
    created.entry = kEntryNames[kind];
    auto context = Context::create(program, created);
    if (!context.ok())
      return context.takeStatus();
    contexts[kind] = std::move(*context);
  }
  return Status();
}

Result<Context *> TrainingSession::findContext(EntryKind kind) const {
  if (contexts[kind])
    return contexts[kind].get();
  return makeError(Code::Usage, "package '", program->package().path(),
                   "' has no entry '", kEntryNames[kind],
                   "': it was not compiled for training");
}

Status TrainingSession::run(EntryKind kind,
                            std::span<const TensorView> inputs) {
  Result<Context *> context = findContext(kind);
  if (!context.ok())
    return context.takeStatus();
  if (inputs.size() != (*context)->inputCount())
    return makeError(Code::Usage, "entry '", kEntryNames[kind], "' takes ",
                     (*context)->inputCount(), " tensors, not ", inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i)
    if (Status status = (*context)->bindInput(i, inputs[i]); !status.ok())
      return status;
  return (*context)->run();
}

Status TrainingSession::initialize() {
  batches = 0;
  last = {};
  return run(Init, {});
}

double TrainingSession::readOutput(EntryKind kind,
                                   std::string_view name) const {
  const auto &outputs = *contexts[kind]->entry().outputs();
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputs.Get(i)->name()->string_view() == name &&
        outputs.Get(i)->shape()->size() == 0) {
      TensorView tensor = contexts[kind]->output(i);
      return readScalar(tensor.dtype,
                        static_cast<const std::byte *>(tensor.data));
    }
  return NAN;
}

Status TrainingSession::finishUpdate(EntryKind kind) {
  last.step = stepCount();
  last.loss = readOutput(kind, "loss");
  last.gradNorm = readOutput(kind, "grad_norm");
  last.lr = readOutput(kind, "lr");
  last.lossScale = readOutput(kind, "loss_scale");
  last.skipped = readOutput(kind, "skipped") > 0;
  if (callback)
    callback(last);
  if (readCount("step/fault") == 0)
    return Status();
  return makeError(Code::Numerics, "the loss or a gradient of step ", last.step,
                   " is not finite; the parameters are those before it");
}

Status TrainingSession::step(std::span<const TensorView> batch) {
  if (Status status = run(Train, batch); !status.ok())
    return status;
  ++batches;
  return finishUpdate(Train);
}

Status TrainingSession::accumulate(std::span<const TensorView> batch) {
  if (Status status = run(Accumulate, batch); !status.ok())
    return status;
  ++batches;
  return Status();
}

Status TrainingSession::apply() {
  if (Status status = run(Apply, {}); !status.ok())
    return status;
  return finishUpdate(Apply);
}

void TrainingSession::clearFault() {
  // A device that fails here fails the next step, too.
  if (auto index = store.find("step/fault"))
    (void)store.write(*index, std::vector<std::byte>(store.byteCount(*index)));
}

Status TrainingSession::evaluate(std::span<const TensorView> batch,
                                 Evaluation &sum) {
  if (Status status = run(Eval, batch); !status.ok())
    return status;
  double correct = readOutput(Eval, "correct");
  sum.loss += readOutput(Eval, "loss");
  sum.count += readOutput(Eval, "count");
  sum.isClassifier = !std::isnan(correct);
  if (sum.isClassifier)
    sum.correct += static_cast<int64_t>(correct);
  return Status();
}

Status TrainingSession::predict(std::span<const TensorView> inputs) {
  return run(Predict, inputs);
}

Result<TensorView> TrainingSession::prediction(size_t index) const {
  Result<Context *> context = findContext(Predict);
  if (!context.ok())
    return context.takeStatus();
  if (index >= (*context)->outputCount())
    return makeError(Code::Usage, "there is no output ", index, " of ",
                     (*context)->outputCount());
  if (!(*context)->hasOutputs())
    return makeError(Code::Usage, "output ", index,
                     " has no value: no prediction was made");
  return (*context)->output(index);
}

int64_t TrainingSession::readCount(std::string_view name) const {
  auto index = store.find(name);
  std::byte element[sizeof(int64_t)] = {};
  if (!index || store.byteCount(*index) == 0)
    return 0;
  DType dtype = store.describe(*index).dtype();
  // A device that fails here fails the next step, too.
  (void)store.read(*index, std::span(element).first(traitsOf(dtype).bytes));
  return static_cast<int64_t>(readScalar(dtype, element));
}

uint64_t TrainingSession::plannedBytes() const {
  for (const auto &context : contexts)
    if (context)
      return context->plannedBytes() + store.byteCount();
  return store.byteCount();
}
