// Training sessions of the C API.

#include "runtime/api/Handles.h"
#include "runtime/api/Ranks.h"
#include "runtime/base/Mirror.h"
#include "runtime/executor/Variants.h"
#include "runtime/ranks/Cores.h"
#include "runtime/train/Checkpoint.h"
#include "runtime/train/InputRole.h"

#include <cstring>

using namespace tcc;
using namespace tcc::runtime;
using format::VariableKind;

static_assert(isMirror<VariableKind, tcc_variable_kind>(
    {{VariableKind::parameter, TCC_PARAMETER},
     {VariableKind::buffer, TCC_BUFFER},
     {VariableKind::slot, TCC_SLOT},
     {VariableKind::gradient, TCC_GRADIENT},
     {VariableKind::step, TCC_STEP},
     {VariableKind::setting, TCC_SETTING},
     {VariableKind::rounded, TCC_ROUNDED},
     {VariableKind::ema, TCC_EMA},
     {VariableKind::partial, TCC_PARTIAL}},
    VariableKind::MAX));

static Result<SessionOptions> convert(const tcc_session_options &given,
                                      tcc_session &session) {
  SessionOptions options;
  options.threads = given.threads;
  options.allocator = toAllocator(given.allocator);
  if (given.pool) {
    if (given.pool->threads < 1 || !given.pool->run)
      return Status(Code::Usage, "a thread pool needs at least one thread");
    session.pool = std::make_unique<InjectedPool>(*given.pool);
    options.runner = session.pool.get();
  }
  auto ranks = joinRanks(given);
  if (!ranks.ok())
    return ranks.takeStatus();
  session.ranks = std::move(*ranks);
  options.communicator = session.ranks.get();
  if (!session.ranks)
    return options;
  Result<int> share = shareCores(*session.ranks);
  if (!share.ok())
    return share.takeStatus();
  if (options.threads <= 0)
    options.threads = *share;
  return options;
}

tcc_status tcc_session_create(const tcc_program *program,
                              const tcc_session_options *options,
                              tcc_session **session) {
  return guard([&]() -> Status {
    auto result = std::make_unique<tcc_session>();
    auto created = convert(readOptions(options), *result);
    if (!created.ok())
      return created.takeStatus();
    auto made = TrainingSession::create(program->executable, *created);
    if (!made.ok())
      return made.takeStatus();
    result->session = std::move(*made);
    const Executable &executable = *program->executable;
    for (const format::Entry *entry :
         listVariants(executable.program(), format::EntryKind::accumulate_step))
      result->variants.push_back(
          describeSpecs(executable.program(), *entry->inputs()));
    *session = result.release();
    return Status();
  });
}

void tcc_session_release(tcc_session *session) { delete session; }

tcc_status tcc_session_initialize(tcc_session *session) {
  return guard([&] { return session->session->initialize(); });
}

size_t tcc_session_input_count(const tcc_session *session) {
  return session->variants.empty() ? 0 : session->variants[0].size();
}

const tcc_tensor_spec *tcc_session_input(const tcc_session *session,
                                         size_t index) {
  return tcc_session_variant_input(session, /*variant=*/0, index);
}

size_t tcc_session_variant_count(const tcc_session *session) {
  return session->variants.size();
}

const tcc_tensor_spec *tcc_session_variant_input(const tcc_session *session,
                                                 size_t variant, size_t index) {
  const auto &variants = session->variants;
  return variant < variants.size() && index < variants[variant].size()
             ? &variants[variant][index].spec
             : nullptr;
}

tcc_status tcc_session_input_role(const tcc_session *session, size_t index,
                                  tcc_input_role *role) {
  return guard([&] {
    const tcc_tensor_spec *input = tcc_session_input(session, index);
    if (!input)
      return makeError(Code::Usage, "input ", index, " of ",
                       tcc_session_input_count(session));
    InputRole found = inputRoleOf(*session->session, input->name);
    *role = {found.isTarget, int32_t(found.tokensAhead.value_or(-1)),
             found.ignoreIndex.value_or(INT64_MIN)};
    return Status();
  });
}

const char *tcc_session_data(const tcc_session *session) {
  const auto *data = session->session->executable().program().data();
  return data ? data->c_str() : nullptr;
}

uint64_t tcc_session_seed(const tcc_session *session) {
  return uint64_t(session->session->read(format::StepField::seed));
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

/// Calls `body` with views of the tensors; later calls allocate nothing.
template <typename Body>
static Status withBatch(tcc_session *session, const tcc_tensor *batch,
                        size_t count, Body body) {
  session->batch.resize(count);
  for (size_t i = 0; i < count; ++i) {
    std::optional<DType> dtype = toDType(batch[i].dtype);
    if (!dtype)
      return makeError(Code::Usage, "tensor ", i, " has an unknown dtype ",
                       int(batch[i].dtype));
    session->batch[i] = {
        batch[i].data, *dtype, {batch[i].shape, batch[i].rank}};
  }
  return body(std::span<const TensorView>(session->batch));
}

static tcc_step_metrics toMetrics(const StepMetrics &metrics) {
  return {metrics.step, metrics.loss,      metrics.gradNorm,
          metrics.lr,   metrics.lossScale, metrics.skipped};
}

static Status finishStep(const tcc_session &session, Status status,
                         tcc_step_metrics *metrics) {
  bool isDone = status.ok() || status.code() == Code::Numerics;
  if (metrics && isDone)
    *metrics = toMetrics(session.session->metrics());
  return status;
}

tcc_status tcc_session_step(tcc_session *session, const tcc_tensor *batch,
                            size_t count, tcc_step_metrics *metrics) {
  return guard([&] {
    Status status = withBatch(session, batch, count, [&](auto views) {
      return session->session->step(views);
    });
    return finishStep(*session, std::move(status), metrics);
  });
}

tcc_status tcc_session_accumulate(tcc_session *session, const tcc_tensor *batch,
                                  size_t count) {
  return guard([&] {
    return withBatch(session, batch, count, [&](auto views) {
      return session->session->accumulate(views);
    });
  });
}

tcc_status tcc_session_apply(tcc_session *session, tcc_step_metrics *metrics) {
  return guard(
      [&] { return finishStep(*session, session->session->apply(), metrics); });
}

void tcc_session_spare_threads(tcc_session *session, int32_t count) {
  session->session->spareThreads(count);
}

void tcc_session_clear_fault(tcc_session *session) {
  session->session->clearFault();
}

void tcc_session_set_callback(tcc_session *session, tcc_step_callback callback,
                              void *user) {
  if (!callback)
    return session->session->setCallback(nullptr);
  session->session->setCallback([=](const StepMetrics &metrics) {
    tcc_step_metrics given = toMetrics(metrics);
    callback(user, &given);
  });
}

tcc_status tcc_session_evaluate(tcc_session *session, const tcc_tensor *batch,
                                size_t count, tcc_evaluation *sum) {
  return guard([&]() -> Status {
    Evaluation added;
    Status status = withBatch(session, batch, count, [&](auto views) {
      return session->session->evaluate(views, added);
    });
    if (!status.ok())
      return status;
    sum->loss += added.loss;
    sum->count += added.count;
    sum->correct = added.isClassifier ? sum->correct + added.correct : -1;
    return Status();
  });
}

tcc_status tcc_session_predict(tcc_session *session, const tcc_tensor *inputs,
                               size_t count) {
  return guard([&] {
    return withBatch(session, inputs, count, [&](auto views) {
      return session->session->predict(views);
    });
  });
}

tcc_status tcc_session_output(tcc_session *session, size_t index,
                              tcc_tensor *tensor) {
  return guard([&]() -> Status {
    Result<TensorView> view = session->session->prediction(index);
    if (!view.ok())
      return view.takeStatus();
    *tensor = {view->data, static_cast<tcc_dtype>(view->dtype),
               view->shape.size(), view->shape.data()};
    return Status();
  });
}

//===----------------------------------------------------------------------===//
// Variables
//===----------------------------------------------------------------------===//

static Status checkIndex(const tcc_session *session, size_t index) {
  size_t count = session->session->variables().size();
  return index < count ? Status()
                       : makeError(Code::Usage, "there is no variable ", index,
                                   " of ", count);
}

static Status checkBytes(const tcc_session *session, size_t index,
                         size_t bytes) {
  if (Status status = checkIndex(session, index); !status.ok())
    return status;
  const Variables &variables = session->session->variables();
  size_t expected = variables.byteCount(index);
  return bytes == expected
             ? Status()
             : makeError(Code::Usage, "variable '",
                         variables.describe(index).name()->string_view(),
                         "' has ", expected, " bytes, not ", bytes);
}

size_t tcc_session_variable_count(const tcc_session *session) {
  return session->session->variables().size();
}

tcc_status tcc_session_variable(const tcc_session *session, size_t index,
                                tcc_variable *variable) {
  return guard([&]() -> Status {
    if (Status status = checkIndex(session, index); !status.ok())
      return status;
    const Variables &variables = session->session->variables();
    const format::Variable &found = variables.describe(index);
    *variable = {found.name()->c_str(),
                 static_cast<tcc_dtype>(found.dtype()),
                 variables.shape(index).size(),
                 variables.shape(index).data(),
                 static_cast<tcc_variable_kind>(found.kind()),
                 found.parameter() ? found.parameter()->c_str() : ""};
    return Status();
  });
}

ptrdiff_t tcc_session_find_variable(const tcc_session *session,
                                    const char *name) {
  auto index = session->session->variables().find(name);
  return index ? static_cast<ptrdiff_t>(*index) : -1;
}

tcc_status tcc_session_read(const tcc_session *session, size_t index,
                            void *data, size_t bytes) {
  return guard([&]() -> Status {
    if (Status status = checkBytes(session, index, bytes); !status.ok())
      return status;
    return session->session->variables().read(
        index, {static_cast<std::byte *>(data), bytes});
  });
}

tcc_status tcc_session_write(tcc_session *session, size_t index,
                             const void *data, size_t bytes) {
  return guard([&]() -> Status {
    if (Status status = checkBytes(session, index, bytes); !status.ok())
      return status;
    return session->session->write(
        index, {static_cast<const std::byte *>(data), bytes});
  });
}

//===----------------------------------------------------------------------===//
// Settings
//===----------------------------------------------------------------------===//

size_t tcc_session_setting_count(const tcc_session *session) {
  return session->session->settings().size();
}

static tcc_setting describe(const Settings &settings,
                            const Variables &variables, size_t index) {
  const format::Setting &found = settings.describe(index);
  tcc_setting setting = {};
  setting.key = found.key()->c_str();
  setting.variable = found.variable();
  setting.dtype =
      static_cast<tcc_dtype>(variables.describe(found.variable()).dtype());
  setting.count = settings.count(index);
  if (const format::Range *range = found.range()) {
    setting.is_number = 1;
    setting.min = range->min();
    setting.max = range->max();
    setting.opens_at_min = range->opens_at_min();
    setting.opens_at_max = range->opens_at_max();
  }
  setting.word_count = found.words() ? found.words()->size() : 0;
  setting.initial = found.initial()->data();
  return setting;
}

tcc_status tcc_session_setting(const tcc_session *session, size_t index,
                               tcc_setting *setting) {
  return guard([&]() -> Status {
    Settings settings = session->session->settings();
    if (index >= settings.size())
      return makeError(Code::Usage, "there is no setting ", index, " of ",
                       settings.size());
    *setting = describe(settings, session->session->variables(), index);
    return Status();
  });
}

const char *tcc_session_setting_word(const tcc_session *session, size_t index,
                                     size_t word) {
  Settings settings = session->session->settings();
  if (index >= settings.size())
    return nullptr;
  const auto *words = settings.describe(index).words();
  return words && word < words->size() ? words->Get(word)->c_str() : nullptr;
}

tcc_status tcc_session_set(tcc_session *session, const char *key,
                           const char *value) {
  return guard([&] { return session->session->settings().set(key, value); });
}

tcc_status tcc_session_set_numbers(tcc_session *session, const char *key,
                                   const double *numbers, size_t count) {
  return guard([&] {
    return session->session->settings().set(key, std::span(numbers, count));
  });
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

tcc_status tcc_session_save(const tcc_session *session, const char *root) {
  return guard([&]() -> Status {
    if (session->saves)
      session->saves->settle();
    Result<std::string> path = saveCheckpoint(*session->session, root);
    return path.ok() ? Status() : path.takeStatus();
  });
}

tcc_status tcc_session_save_async(tcc_session *session, const char *root,
                                  const tcc_retention *retention) {
  return guard([&] {
    tcc_retention given = readOptions(retention);
    if (!session->saves)
      session->saves = std::make_unique<SavesBeside>(*session->session);
    return session->saves->begin(root, {given.keep_last, given.keep_every});
  });
}

tcc_status tcc_session_wait(tcc_session *session, const char **path) {
  return guard([&]() -> Status {
    Result<std::string> written =
        session->saves ? session->saves->take() : Result<std::string>("");
    if (!written.ok())
      return written.takeStatus();
    session->path = *written;
    if (path)
      *path = session->path.c_str();
    return Status();
  });
}

tcc_status tcc_session_restore_latest(tcc_session *session, const char *root,
                                      tcc_restored *restored) {
  return guard([&]() -> Status {
    auto found = restoreLatestCheckpoint(*session->session, root);
    if (!found.ok())
      return found.takeStatus();
    session->path = found->newest.value_or("");
    session->passedOver.clear();
    for (const std::string &reason : found->passedOver)
      session->passedOver += reason + "\n";
    if (restored)
      *restored = {session->path.c_str(), session->passedOver.c_str()};
    if (!found->newest && !found->passedOver.empty())
      return makeError(Code::BadData, "no checkpoint in '", root,
                       "' is whole: ", session->passedOver);
    return Status();
  });
}

tcc_status tcc_session_restore(tcc_session *session, const char *path) {
  return guard([&] {
    Result<CheckpointSearch> found = findNewestCheckpoint(path);
    if (!found.ok())
      return found.takeStatus();
    return restoreCheckpoint(*session->session,
                             found->newest ? *found->newest : path);
  });
}

tcc_status tcc_session_load_parameters(tcc_session *session, const char *file) {
  return guard([&] { return initializeFrom(*session->session, file); });
}

tcc_status tcc_session_export_parameters(const tcc_session *session,
                                         const char *file) {
  return guard([&] { return exportParameters(*session->session, file); });
}

uint64_t tcc_session_planned_bytes(const tcc_session *session) {
  return session->session->planned().total();
}
