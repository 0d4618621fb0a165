// Training sessions on the emulated device.

#include "runtime/train/Checkpoint.h"
#include "runtime/train/Session.h"
#include "tests/runtime/train/LineProgram.h"

using namespace tcc::runtime;
using namespace tcc::tests;

/// The bits of a session are those of the host.
TEST(CudaSession, TrainsAsTheHost) {
  ProgramBuilder onHost = lineProgram(), builder = lineProgram();
  TemporaryFolder folder;
  onHost.write(folder / "host.tcc");
  auto host =
      unwrap(TrainingSession::create(loadExecutable(folder / "host.tcc")));
  auto device = unwrap(TrainingSession::create(loadEmulated(builder)));
  std::vector<float> x = {0.5f, -1, 1.5f, 0.25f}, y = {1, -2, 3, 0.5f};
  int64_t shape[] = {kLineBatch};
  TensorView batch[] = {{x.data(), DType::f32, shape},
                        {y.data(), DType::f32, shape}};
  for (int step = 0; step < 5; ++step)
    for (TrainingSession *session : {host.get(), device.get()}) {
      ASSERT_THAT(session->step(batch), succeeds());
      ASSERT_THAT(session->accumulate(batch), succeeds());
      ASSERT_THAT(session->accumulate(batch), succeeds());
      ASSERT_THAT(session->apply(), succeeds());
    }
  EXPECT_EQ(device->stepCount(), 10);
  EXPECT_EQ(host->metrics().loss, device->metrics().loss);
  Variables::Snapshot expected = unwrap(host->variables().snapshot());
  Variables::Snapshot found = unwrap(device->variables().snapshot());
  for (size_t i = 0; i < host->variables().size(); ++i)
    EXPECT_TRUE(std::ranges::equal(expected.bytes(i), found.bytes(i)));
  std::string saved = unwrap(saveCheckpoint(*device, folder / "run"));
  ASSERT_THAT(device->initialize(), succeeds());
  ASSERT_THAT(restoreCheckpoint(*device, saved), succeeds());
  EXPECT_EQ(device->stepCount(), 10);
  Evaluation ours, theirs;
  ASSERT_THAT(device->evaluate(batch, ours), succeeds());
  ASSERT_THAT(host->evaluate(batch, theirs), succeeds());
  EXPECT_EQ(ours.loss, theirs.loss);
}

/// Of two steps under way each has its own batch and its own metrics.
TEST(CudaSession, TakesTheNextBatchWhileItWorks) {
  ProgramBuilder builder = lineProgram(), same = lineProgram();
  auto steps = unwrap(TrainingSession::create(loadEmulated(same)));
  auto flights = unwrap(TrainingSession::create(loadEmulated(builder)));
  ASSERT_EQ(flights->depth(), 2u);
  EXPECT_THAT(flights->finish(), failsWith(Code::Usage, "no step"));
  std::vector<float> x(kLineBatch), y(kLineBatch);
  int64_t shape[] = {kLineBatch};
  TensorView batch[] = {{x.data(), DType::f32, shape},
                        {y.data(), DType::f32, shape}};
  auto fill = [&](int step) {
    for (int i = 0; i < kLineBatch; ++i) {
      x[i] = static_cast<float>(i + step) / 8;
      y[i] = 3 * x[i];
    }
  };
  std::vector<double> expected, found;
  constexpr int kSteps = 7;
  for (int step = 0; step < kSteps; ++step) {
    fill(step);
    ASSERT_THAT(steps->step(batch), succeeds());
    expected.push_back(steps->metrics().loss);
  }
  flights->setCallback([&](const StepMetrics &metrics) {
    EXPECT_EQ(metrics.step, static_cast<int64_t>(found.size()) + 1);
    found.push_back(metrics.loss);
  });
  for (int step = 0; step < kSteps; ++step) {
    fill(step);
    ASSERT_THAT(flights->start(EntryKind::train_step, batch), succeeds());
    if (flights->underWay() < flights->depth())
      continue;
    EXPECT_THAT(flights->start(EntryKind::train_step, batch),
                failsWith(Code::Usage, "2 steps are under way"));
    ASSERT_THAT(flights->finish(), succeeds());
  }
  ASSERT_THAT(flights->finish(), succeeds());
  EXPECT_EQ(found, expected);
  // What is under way when a session ends is waited for.
  ASSERT_THAT(flights->start(EntryKind::train_step, batch), succeeds());
}

/// A device has begun what comes after a step that stops: of that nothing is
/// left, as on the host, where it is never begun.
TEST(CudaSession, StopsWhereTheHostStops) {
  ProgramBuilder onHost = lineProgram(), builder = lineProgram();
  TemporaryFolder folder;
  onHost.write(folder / "host.tcc");
  auto host =
      unwrap(TrainingSession::create(loadExecutable(folder / "host.tcc")));
  auto device = unwrap(TrainingSession::create(loadEmulated(builder)));
  std::vector<float> x(kLineBatch, 1), y(kLineBatch, 2);
  std::vector<float> bad(kLineBatch, NAN);
  int64_t shape[] = {kLineBatch};
  TensorView good[] = {{x.data(), DType::f32, shape},
                       {y.data(), DType::f32, shape}};
  TensorView spoiled[] = {{x.data(), DType::f32, shape},
                          {bad.data(), DType::f32, shape}};
  for (EntryKind after : {EntryKind::train_step, EntryKind::accumulate_step}) {
    ASSERT_THAT(host->step(good), succeeds());
    EXPECT_THAT(host->step(spoiled), failsWith(Code::Numerics, "not finite"));
    ASSERT_THAT(device->step(good), succeeds());
    ASSERT_THAT(device->start(EntryKind::train_step, spoiled), succeeds());
    ASSERT_THAT(device->start(after, good), succeeds());
    EXPECT_THAT(device->finish(), failsWith(Code::Numerics, "not finite"));
    EXPECT_EQ(device->underWay(), 0u);
    EXPECT_EQ(device->metrics().step, host->metrics().step);
    EXPECT_EQ(device->batchNumber(), host->batchNumber());
    Variables::Snapshot expected = unwrap(host->variables().snapshot());
    Variables::Snapshot found = unwrap(device->variables().snapshot());
    for (size_t i = 0; i < host->variables().size(); ++i)
      EXPECT_TRUE(std::ranges::equal(expected.bytes(i), found.bytes(i)));
    host->clearFault();
    device->clearFault();
  }
}
