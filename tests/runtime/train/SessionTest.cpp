#include "runtime/train/Session.h"

#include "runtime/train/Checkpoint.h"
#include "tests/runtime/Allocations.h"
#include "tests/runtime/train/LineProgram.h"

#include <cstring>

using namespace tcc::runtime;
using namespace tcc::tests;

namespace {

/// A session of the line package.
class SessionTest : public testing::Test {
protected:
  void SetUp() override {
    builder.write(path);
    session = open();
  }

  std::unique_ptr<TrainingSession> open(int threads = 1) {
    SessionOptions options;
    options.threads = threads;
    return unwrap(TrainingSession::create(loadExecutable(path), options));
  }

  Status step(TrainingSession &session, float slope) {
    return run(session, slope);
  }
  Status run(TrainingSession &session, float slope,
             Status (TrainingSession::*call)(std::span<const TensorView>) =
                 &TrainingSession::step) {
    for (size_t i = 0; i < x.size(); ++i)
      y[i] = slope * x[i];
    TensorView batch[] = {{x.data(), DType::f32, shape},
                          {y.data(), DType::f32, shape}};
    return (session.*call)(batch);
  }

  static float parameter(const TrainingSession &session) {
    float value;
    EXPECT_THAT(session.variables().read(
                    0, std::as_writable_bytes(std::span(&value, 1))),
                succeeds());
    return value;
  }

  ProgramBuilder builder = lineProgram();
  TemporaryFolder folder;
  std::string path = folder / "line.tcc";
  std::unique_ptr<TrainingSession> session;
  std::vector<float> x = {0.5f, -1, 1.5f, 0.25f};
  std::vector<float> y = x;
  int64_t shape[1] = {kLineBatch};
};

} // namespace

TEST_F(SessionTest, LearnsInSteps) {
  EXPECT_EQ(parameter(*session), 0.5f);
  double before = 0;
  for (int i = 1; i <= 40; ++i) {
    ASSERT_THAT(step(*session, 3), succeeds());
    EXPECT_EQ(session->metrics().step, i);
    EXPECT_FALSE(session->metrics().skipped);
    if (i > 1) {
      EXPECT_LT(session->metrics().loss, before);
    }
    before = session->metrics().loss;
  }
  EXPECT_NEAR(parameter(*session), 3, 1e-2);
  EXPECT_EQ(session->batchNumber(), 40);
  ASSERT_THAT(session->initialize(), succeeds());
  EXPECT_EQ(parameter(*session), 0.5f);
  EXPECT_EQ(session->stepCount(), 0);
}

TEST_F(SessionTest, AccumulatesToTheStepOfAllBatches) {
  for (int i = 0; i < 3; ++i)
    ASSERT_THAT(run(*session, 3, &TrainingSession::accumulate), succeeds());
  EXPECT_EQ(parameter(*session), 0.5f);
  ASSERT_THAT(session->apply(), succeeds());
  EXPECT_EQ(session->stepCount(), 1);
  std::unique_ptr<TrainingSession> other = open();
  ASSERT_THAT(step(*other, 3), succeeds());
  EXPECT_EQ(parameter(*session), parameter(*other));
}

TEST_F(SessionTest, AllocatesNothingInAStep) {
  if (!TCC_COUNTS_ALLOCATIONS)
    GTEST_SKIP();
  ASSERT_THAT(step(*session, 3), succeeds());
  int64_t before = allocationCount();
  Status status = step(*session, 3);
  EXPECT_EQ(allocationCount(), before);
  EXPECT_THAT(status, succeeds());
}

TEST_F(SessionTest, EvaluatesAndPredicts) {
  Evaluation sum;
  TensorView batch[] = {{x.data(), DType::f32, shape},
                        {x.data(), DType::f32, shape}};
  for (int i = 0; i < 2; ++i)
    ASSERT_THAT(session->evaluate(batch, sum), succeeds());
  EXPECT_EQ(sum.count, 8);
  EXPECT_FLOAT_EQ(sum.loss, 2 * 0.25 * (0.25 + 1 + 2.25 + 0.0625));
  EXPECT_FALSE(sum.isClassifier);
  EXPECT_THAT(session->prediction(0).takeStatus(),
              failsWith(Code::Usage, "no prediction was made"));
  ASSERT_THAT(session->predict({batch, 1}), succeeds());
  EXPECT_EQ(floatsOf(unwrap(session->prediction(0)))[2], 0.75f);
  EXPECT_THAT(session->predict(batch), failsWith(Code::Usage, "takes 1"));
}

TEST_F(SessionTest, StopsAtAFaultUntilItIsCleared) {
  int updates = 0;
  session->setCallback([&](const StepMetrics &) { ++updates; });
  ASSERT_THAT(step(*session, 3), succeeds());
  float good = parameter(*session);
  EXPECT_THAT(step(*session, NAN), failsWith(Code::Numerics, "step 2"));
  EXPECT_TRUE(session->metrics().skipped);
  EXPECT_THAT(step(*session, 3), failsWith(Code::Numerics, "step 2"));
  EXPECT_EQ(parameter(*session), good);
  session->clearFault();
  ASSERT_THAT(step(*session, 3), succeeds());
  EXPECT_NE(parameter(*session), good);
  EXPECT_EQ(updates, 4);
}

TEST_F(SessionTest, RestoresTheSameBits) {
  std::unique_ptr<TrainingSession> whole = open(2);
  for (int i = 0; i < 6; ++i)
    ASSERT_THAT(step(*whole, 3), succeeds());
  for (int i = 0; i < 3; ++i)
    ASSERT_THAT(step(*session, 3), succeeds());
  std::string saved = unwrap(saveCheckpoint(*session, folder / "run"));
  EXPECT_EQ(saved, folder / "run/step-3");
  ASSERT_THAT(step(*session, 5), succeeds());
  unwrap(saveCheckpoint(*session, folder / "run"));
  EXPECT_EQ(unwrap(findNewestCheckpoint(folder / "run")).newest,
            folder / "run/step-4");
  std::filesystem::remove(folder / "run/step-4/manifest.json");
  EXPECT_EQ(unwrap(findNewestCheckpoint(folder / "run")).newest, saved);

  std::unique_ptr<TrainingSession> half = open();
  ASSERT_THAT(restoreCheckpoint(*half, saved), succeeds());
  EXPECT_EQ(half->stepCount(), 3);
  EXPECT_EQ(half->batchNumber(), 3);
  for (int i = 0; i < 3; ++i)
    ASSERT_THAT(step(*half, 3), succeeds());
  Variables::Snapshot found = unwrap(half->variables().snapshot());
  Variables::Snapshot expected = unwrap(whole->variables().snapshot());
  for (size_t i = 0; i < half->variables().size(); ++i)
    EXPECT_TRUE(std::ranges::equal(found.bytes(i), expected.bytes(i)));
}

/// One whose bytes are others is passed over, too.
TEST_F(SessionTest, RestoresTheLatestThatIsWhole) {
  std::string root = folder / "run";
  ASSERT_THAT(step(*session, 3), succeeds());
  std::string older = unwrap(saveCheckpoint(*session, root));
  float expected = parameter(*session);
  ASSERT_THAT(step(*session, 5), succeeds());
  std::string file =
      unwrap(saveCheckpoint(*session, root)) + "/state.safetensors";
  std::vector<char> bytes = readBytes(file);
  bytes.back() ^= 1;
  std::ofstream(file, std::ios::binary).write(bytes.data(), bytes.size());
  std::unique_ptr<TrainingSession> other = open();
  CheckpointSearch found = unwrap(restoreLatestCheckpoint(*other, root));
  EXPECT_EQ(found.newest, older);
  EXPECT_TRUE(found.isAnyDamaged);
  EXPECT_THAT(found.passedOver,
              testing::ElementsAre(testing::HasSubstr("is damaged")));
  EXPECT_EQ(parameter(*other), expected);
  EXPECT_EQ(unwrap(restoreLatestCheckpoint(*other, folder / "none")).newest,
            std::nullopt);
}

/// What is there in part is passed over, with the reason.
TEST_F(SessionTest, PassesOverIncompleteCheckpoints) {
  std::string older = unwrap(saveCheckpoint(*session, folder / "run"));
  ASSERT_THAT(step(*session, 3), succeeds());
  std::string newer = unwrap(saveCheckpoint(*session, folder / "run"));
  EXPECT_THAT(unwrap(findNewestCheckpoint(folder / "run")).passedOver,
              testing::IsEmpty());
  std::filesystem::resize_file(newer + "/state.safetensors", 20);
  CheckpointSearch found = unwrap(findNewestCheckpoint(folder / "run"));
  EXPECT_EQ(found.newest, older);
  EXPECT_THAT(found.passedOver,
              testing::ElementsAre(testing::HasSubstr("safetensors")));
  std::filesystem::remove(newer + "/state.safetensors");
  std::filesystem::remove(older + "/manifest.json");
  found = unwrap(findNewestCheckpoint(folder / "run"));
  EXPECT_EQ(found.newest, std::nullopt);
  EXPECT_THAT(found.passedOver,
              testing::ElementsAre(testing::HasSubstr("state.safetensors"),
                                   testing::HasSubstr("manifest.json")));
  // One that cannot be read may be whole.
  std::filesystem::create_directory(older + "/manifest.json");
  EXPECT_THAT(findNewestCheckpoint(folder / "run").takeStatus(),
              failsWith(Code::Io, "manifest.json"));
}

/// Whoever resumes hears of it, and does not go on from an older one.
TEST_F(SessionTest, FindsCheckpointsOfOtherVersions) {
  std::string older = unwrap(saveCheckpoint(*session, folder / "run"));
  std::string newest = folder / "run/step-9";
  auto writeManifest = [&](std::string text) {
    writeBytes(newest + "/manifest.json", {text.begin(), text.end()});
  };
  std::filesystem::create_directory(newest);
  writeManifest(R"({"schema_version": 1, "step": 9})");
  EXPECT_EQ(unwrap(findNewestCheckpoint(folder / "run")).newest, newest);
  EXPECT_THAT(
      restoreCheckpoint(*session, newest),
      failsWith(Code::BadData, "is of schema version 1, expected 2 to 3"));
  for (const char *text : {R"({"step": 9})", R"(["schema_version"])", "{"}) {
    writeManifest(text);
    EXPECT_EQ(unwrap(findNewestCheckpoint(folder / "run")).newest, older);
    EXPECT_THAT(restoreCheckpoint(*session, newest),
                failsWith(Code::BadData, "is no manifest"));
  }
}

TEST_F(SessionTest, RefusesWhatDoesNotFit) {
  std::string saved = unwrap(saveCheckpoint(*session, folder / "run"));
  ProgramBuilder changed = lineProgram();
  changed.tables.variables[0]->name = "v";
  changed.tables.variables[4]->shape = {1};
  changed.write(path);
  std::unique_ptr<TrainingSession> other = open();
  EXPECT_THAT(restoreCheckpoint(*other, saved),
              failsWith(Code::Usage,
                        "missing: v; unexpected: w; of another type: "
                        "step/fault (i64 scalar, expected i64 1)"));
  std::vector<char> bytes = readBytes(saved + "/state.safetensors");
  bytes.back() ^= 1;
  writeBytes(saved + "/state.safetensors", bytes);
  EXPECT_THAT(restoreCheckpoint(*session, saved),
              failsWith(Code::BadData, "damaged"));
}

/// Of two ranks the first takes every other batch.
TEST_F(SessionTest, NumbersTheBatchesOfAllRanks) {
  auto write = [&](tcc::format::StepField field, int64_t value) {
    size_t variable = *session->variables().find(field);
    ASSERT_THAT(session->write(variable, std::as_bytes(std::span(&value, 1))),
                succeeds());
  };
  using tcc::format::StepField;
  write(StepField::world, 2);
  EXPECT_EQ(session->batchNumber(), 0);
  ASSERT_THAT(run(*session, 3, &TrainingSession::accumulate), succeeds());
  EXPECT_EQ(session->batchNumber(), 2);
  ASSERT_THAT(run(*session, 3, &TrainingSession::accumulate), succeeds());
  ASSERT_THAT(session->apply(), succeeds());
  EXPECT_EQ(session->read(StepField::first), 4);
  EXPECT_EQ(session->batchNumber(), 4);
  // The world changes between updates: nothing is taken twice or left out.
  write(StepField::world, 1);
  ASSERT_THAT(step(*session, 3), succeeds());
  EXPECT_EQ(session->batchNumber(), 5);
  EXPECT_THAT(step(*session, NAN), failsWith(Code::Numerics, "step 3"));
  EXPECT_EQ(session->batchNumber(), 6);
  EXPECT_THAT(step(*session, 3), failsWith(Code::Numerics, "step 3"));
  EXPECT_EQ(session->batchNumber(), 6) << "a step after a fault takes none";
}

/// What ranks share is the same in the checkpoint of each.
TEST_F(SessionTest, WritesTheManifestThatAllRanksWrite) {
  ProgramBuilder ranked = lineProgram();
  uint32_t rank = ranked.field(tcc::format::StepField::rank);
  ranked.write(path);
  auto manifestOf = [&](int64_t number) {
    std::unique_ptr<TrainingSession> other = open();
    EXPECT_THAT(
        other->variables().write(rank, std::as_bytes(std::span(&number, 1))),
        succeeds());
    other->readBatchNumber();
    EXPECT_THAT(step(*other, 3), succeeds());
    EXPECT_EQ(other->batchNumber(), 1 + number);
    EXPECT_EQ(other->batchCount(), 1);
    return readBytes(unwrap(saveCheckpoint(*other, folder / "run")) +
                     "/manifest.json");
  };
  EXPECT_EQ(manifestOf(0), manifestOf(3));
}

/// A batch goes to the variant that has its size.
TEST_F(SessionTest, HasVariantsOfSizes) {
  sizedLineProgram().write(path);
  std::unique_ptr<TrainingSession> other = open();
  auto call = [&](int64_t samples, auto method) {
    TensorView batch[] = {{x.data(), DType::f32, {&samples, 1}},
                          {y.data(), DType::f32, {&samples, 1}}};
    return method(std::span<const TensorView>(batch));
  };
  auto step = [&](auto batch) { return other->step(batch); };
  y = {1, -2, 3, 0.5f}; // 2 x
  ASSERT_THAT(call(kLineBatch, step), succeeds());
  float ofFour = parameter(*other);
  ASSERT_THAT(other->initialize(), succeeds());
  ASSERT_THAT(call(kSmallLineBatch, step), succeeds());
  // 0.5 + 0.1 * the mean over two samples of 2 x (2 x - 0.5 x)
  EXPECT_FLOAT_EQ(parameter(*other), 0.5f + 0.1f * 1.25f * 1.5f);
  EXPECT_NE(parameter(*other), ofFour);
  EXPECT_EQ(other->batchNumber(), 1);
  ASSERT_THAT(call(kSmallLineBatch,
                   [&](auto batch) { return other->predict(batch.first(1)); }),
              succeeds());
  EXPECT_EQ(unwrap(other->prediction(0)).shape[0], kSmallLineBatch);
  EXPECT_THAT(call(3, step),
              failsWith(Code::Usage,
                        "no variant of entry 'train_step' has such sizes: "
                        "input 'x' is 3, expected one of 4, 2"));
  EXPECT_THAT(other->start(EntryKind::eval, {}),
              failsWith(Code::Usage, "entry 'eval' is no step"));
}

/// With a slot that holds a part of a tensor of shape `global`.
static ProgramBuilder slicedProgram(std::vector<int64_t> shape,
                                    std::vector<int64_t> offset,
                                    std::vector<int64_t> global) {
  ProgramBuilder builder = lineProgram();
  uint32_t index = builder.variable("exp_avg/w", DType::f32, shape,
                                    tcc::format::VariableKind::slot);
  auto &variable = *builder.tables.variables[index];
  variable.parameter = "w";
  if (shape != global) {
    variable.global_shape = global;
    variable.offset = offset;
  }
  return builder;
}

/// A checkpoint is of the whole tensors: what has all elements of a slice
/// restores it.
TEST_F(SessionTest, RestoresSlices) {
  auto open = [&](std::vector<int64_t> shape, std::vector<int64_t> offset) {
    slicedProgram(shape, offset, {3, 4}).write(path);
    return this->open();
  };
  auto values = [](TrainingSession &session) {
    size_t index = session.variables().size() - 1;
    std::vector<float> values(session.variables().byteCount(index) / 4);
    EXPECT_THAT(session.variables().read(
                    index, std::as_writable_bytes(std::span(values))),
                succeeds());
    return values;
  };
  std::unique_ptr<TrainingSession> whole = open({3, 4}, {0, 0});
  std::vector<float> all(12);
  for (size_t i = 0; i < all.size(); ++i)
    all[i] = float(i);
  ASSERT_THAT(whole->variables().write(whole->variables().size() - 1,
                                       std::as_bytes(std::span(all))),
              succeeds());
  std::string saved = unwrap(saveCheckpoint(*whole, folder / "whole"));
  std::unique_ptr<TrainingSession> part = open({2, 3}, {1, 1});
  ASSERT_THAT(restoreCheckpoint(*part, saved), succeeds());
  EXPECT_EQ(values(*part), (std::vector<float>{5, 6, 7, 9, 10, 11}));
  saved = unwrap(saveCheckpoint(*part, folder / "part"));
  EXPECT_THAT(
      restoreCheckpoint(*whole, saved),
      failsWith(Code::BadData, "lacks 6 elements of tensor 'exp_avg/w'"));
}

TEST_F(SessionTest, ExportsWhatItCanBeginWith) {
  for (int i = 0; i < 5; ++i)
    ASSERT_THAT(step(*session, 3), succeeds());
  std::string file = folder / "trained.safetensors";
  ASSERT_THAT(exportParameters(*session, file), succeeds());
  std::unique_ptr<TrainingSession> other = open();
  ASSERT_THAT(initializeFrom(*other, file), succeeds());
  EXPECT_EQ(parameter(*other), parameter(*session));
  EXPECT_EQ(other->stepCount(), 0);
}

/// What is written from outside reaches the copies before they are read;
/// checkpoints have none, so that packages with and without them share these.
TEST_F(SessionTest, CopiesFollowTheirParameters) {
  ProgramBuilder copying = lineProgram();
  uint32_t copy = copying.variable("rounded/w", DType::f32, {1},
                                   tcc::format::VariableKind::rounded);
  copying.inEntry(EntryKind::round_parameters);
  tcc::format::CopyT command;
  command.from = copying.buffer(tcc::format::StorageClass::variable, 0, 4);
  command.to = copying.buffer(tcc::format::StorageClass::variable, copy, 4);
  command.bytes = constant(4);
  copying.command(std::move(command));
  copying.write(path);
  std::unique_ptr<TrainingSession> other = open();
  auto readCopy = [&] {
    float value;
    EXPECT_THAT(other->variables().read(
                    copy, std::as_writable_bytes(std::span(&value, 1))),
                succeeds());
    return value;
  };
  ASSERT_THAT(step(*other, 3), succeeds());
  EXPECT_EQ(readCopy(), 0) << "an entry that trains writes them itself";
  TensorView batch[] = {{x.data(), DType::f32, shape}};
  for (auto [index, value] : {std::pair(0u, 0.75f), std::pair(copy, 4.0f)}) {
    ASSERT_THAT(
        other->variables().write(index, std::as_bytes(std::span(&value, 1))),
        succeeds());
    ASSERT_THAT(other->predict(batch), succeeds());
    EXPECT_EQ(readCopy(), 0.75f);
  }
  std::string saved = unwrap(saveCheckpoint(*session, folder / "run"));
  ASSERT_THAT(restoreCheckpoint(*other, saved), succeeds());
  ASSERT_THAT(other->predict(batch), succeeds());
  EXPECT_EQ(readCopy(), 0.5f);
  EXPECT_EQ(unwrap(saveCheckpoint(*other, folder / "copying")),
            folder / "copying/step-0");
  ASSERT_THAT(restoreCheckpoint(*session, folder / "copying/step-0"),
              succeeds());
}

/// However settings were changed, those that do not go together make no step.
TEST_F(SessionTest, RefusesStepsWithAScheduleThatMissesValues) {
  auto declare = [&](const char *key) -> tcc::format::SettingT & {
    builder.setting(key,
                    builder.variable(std::string("set/") + key, DType::i64, {},
                                     tcc::format::VariableKind::setting));
    return *builder.tables.settings.back();
  };
  tcc::format::SettingT &kind = declare("schedule.kind");
  kind.range = nullptr;
  kind.words = {"constant", "step"};
  *declare("schedule.step_size").range = {1, HUGE_VAL, false, true};
  builder.write(path);
  session = open();
  ASSERT_THAT(session->settings().set("schedule.kind", "step"), succeeds());
  float before = parameter(*session);
  for (int turn = 0; turn < 2; ++turn)
    EXPECT_THAT(step(*session, 3),
                failsWith(Code::Usage, "schedule.kind = 'step' needs "
                                       "schedule.step_size"));
  EXPECT_EQ(parameter(*session), before);
  ASSERT_THAT(session->settings().set("schedule.step_size", "5"), succeeds());
  EXPECT_THAT(step(*session, 3), succeeds());
}
