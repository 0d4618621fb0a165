#include "runtime/data/BatchLoader.h"

#include "runtime/base/ThreadPool.h"
#include "tests/runtime/Fixture.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <numeric>
#include <thread>

using namespace tcc::runtime;
using namespace tcc::tests;

namespace {

/// One tensor, of which sample i is i.
class Counting final : public SampleSource {
public:
  int64_t sampleCount() const override { return 7; }
  Status read(int64_t, int64_t number, SampleParts parts) const override {
    std::memcpy(parts[0].data(), &number, sizeof(number));
    return Status();
  }
};

BatchOrder orderAsTheyLie(int64_t samples, int64_t batch) {
  return {samples, batch, SampleOrder(samples, 0, false), /*fills=*/false};
}

} // namespace

TEST(BatchLoader, LeavesOutWhatFillsNoBatch) {
  BatchTensor tensors[] = {{"x", DType::i64, {3}}};
  BatchLoader loader = unwrap(BatchLoader::create(
      std::make_unique<Counting>(), tensors, orderAsTheyLie(7, 3)));
  EXPECT_EQ(loader.order().batchesPerEpoch(), 2);
  for (int64_t batch : {1, 3}) {
    ASSERT_THAT(loader.read(batch), succeeds());
    auto data = reinterpret_cast<const int64_t *>(loader.batch()[0].data);
    EXPECT_EQ(std::vector<int64_t>(data, data + 3),
              (std::vector<int64_t>{3, 4, 5}));
  }
  tensors[0].shape = {8};
  EXPECT_THAT(BatchLoader::create(std::make_unique<Counting>(), tensors,
                                  orderAsTheyLie(7, 8))
                  .takeStatus(),
              failsWith(Code::Usage, "have 7 samples"));
}

TEST(BatchLoader, FindsTheSampleOfANumber) {
  BatchTensor tensors[] = {{"x", DType::i64, {3}}};
  BatchLoader loader = unwrap(BatchLoader::create(
      std::make_unique<Counting>(), tensors, orderAsTheyLie(7, 3)));
  ASSERT_THAT(loader.read(1), succeeds());
  EXPECT_EQ(loader.findSample(0, 4), 4);
  EXPECT_EQ(loader.findSample(0, 2), std::nullopt);
  EXPECT_EQ(loader.findSample(0, -1), std::nullopt);
}

TEST(BatchLoader, FillsUpWhatHasWeights) {
  BatchTensor tensors[] = {{"sample_weight", DType::f32, {2}}};
  class Weighing final : public SampleSource {
    int64_t sampleCount() const override { return 3; }
    Status read(int64_t, int64_t number, SampleParts parts) const override {
      float weight = float(number + 1);
      std::memcpy(parts[0].data(), &weight, sizeof(weight));
      return Status();
    }
  };
  BatchLoader loader = unwrap(BatchLoader::create(
      std::make_unique<Weighing>(), tensors,
      BatchOrder(3, 2, SampleOrder(3, 0, false), /*fills=*/true)));
  EXPECT_EQ(loader.order().batchesPerEpoch(), 2);
  EXPECT_EQ(loader.order().samplesPerEpoch(), 3);
  ASSERT_THAT(loader.read(0), succeeds());
  auto weights = reinterpret_cast<const float *>(loader.batch()[0].data);
  EXPECT_EQ(std::vector(weights, weights + 2), (std::vector<float>{1, 2}));
  ASSERT_THAT(loader.read(1), succeeds());
  EXPECT_EQ(std::vector(weights, weights + 2), (std::vector<float>{3, 0}));
}

namespace {

/// Of sample i its epoch and i; fails at some of them, and takes its time, now
/// more, now less.
class Slow final : public SampleSource {
public:
  Slow(int64_t count, std::vector<int64_t> bad = {})
      : count(count), bad(std::move(bad)) {}

  int64_t sampleCount() const override { return count; }
  Status read(int64_t epoch, int64_t number, SampleParts parts) const override {
    std::this_thread::sleep_for(std::chrono::microseconds(number * 37 % 50));
    if (std::ranges::find(bad, number) != bad.end())
      return Status(Code::BadData, "sample " + std::to_string(number));
    int64_t values[] = {epoch, number};
    std::memcpy(parts[0].data(), &values, sizeof(values));
    return Status();
  }

private:
  int64_t count;
  std::vector<int64_t> bad;
};

constexpr int64_t kBatch = 8;

BatchLoader openSlow(const LoaderOptions &options,
                     std::vector<int64_t> bad = {}) {
  BatchTensor tensors[] = {{"x", DType::i64, {kBatch, 2}}};
  return unwrap(
      BatchLoader::create(std::make_unique<Slow>(45, std::move(bad)), tensors,
                          BatchOrder(45, kBatch, SampleOrder(45, 7, true),
                                     /*fills=*/false),
                          options));
}

std::vector<int64_t> listNext(int64_t number, int64_t count) {
  std::vector<int64_t> next(count);
  std::iota(next.begin(), next.end(), number + 1);
  return next;
}

std::vector<int64_t> copyBatch(const BatchLoader &loader) {
  auto data = reinterpret_cast<const int64_t *>(loader.batch()[0].data);
  return {data, data + 2 * kBatch};
}

} // namespace

// Whatever is read ahead, and whatever is asked for instead.
TEST(BatchLoader, HasTheSameBatchesWithAnyWorkers) {
  std::vector<int64_t> asked(20);
  std::iota(asked.begin(), asked.end(), 0);
  for (int64_t number : {3, 4, 4, 19, 2, 3, 7, 8})
    asked.push_back(number);
  BatchLoader alone = openSlow({.workers = 0});
  std::vector<std::vector<int64_t>> expected;
  for (int64_t number : asked) {
    ASSERT_THAT(alone.read(number), succeeds());
    expected.push_back(copyBatch(alone));
  }
  for (int workers : {1, 2, 8})
    for (int slots : {0, 2, 5}) {
      BatchLoader loader = openSlow({.workers = workers, .slots = slots});
      EXPECT_EQ(loader.workerCount(), workers);
      EXPECT_EQ(loader.depth(), std::max(slots, 2) - 1);
      for (size_t i = 0; i < asked.size(); ++i) {
        auto next = listNext(asked[i], i % 7);
        ASSERT_THAT(loader.read(asked[i], next), succeeds());
        ASSERT_EQ(copyBatch(loader), expected[i]) << workers << " " << i;
      }
    }
}

TEST(BatchLoader, FailsAtTheBatchOfABadSample) {
  EpochOrder order = SampleOrder(45, 7, true).of(0);
  std::vector<int64_t> bad = {order.at(2 * kBatch + 5), order.at(2 * kBatch)};
  std::string first = "sample " + std::to_string(bad[1]);
  for (int workers : {0, 1, 3}) {
    BatchLoader loader = openSlow({.workers = workers}, bad);
    for (int turn = 0; turn < 2; ++turn)
      for (int64_t number = 0; number < 5; ++number) {
        Status status = loader.read(number, listNext(number, 3));
        if (number == 2)
          EXPECT_THAT(status, failsWith(Code::BadData, first));
        else
          EXPECT_THAT(status, succeeds());
      }
  }
}

TEST(BatchLoader, AddsWorkersWhereBatchesAreWaitedFor) {
  BatchLoader loader = openSlow({});
  EXPECT_EQ(loader.workerCount(), 0);
  EXPECT_EQ(loader.depth(), 0u);
  for (int64_t number = 0; number < 40; ++number)
    ASSERT_THAT(loader.read(number, listNext(number, loader.depth())),
                succeeds());
  EXPECT_EQ(loader.workerCount() > 0, defaultThreadCount() > 1);
  EXPECT_LT(loader.workerCount(), defaultThreadCount());
  EXPECT_GT(loader.takeWait(), 0);
  EXPECT_EQ(loader.takeWait(), 0);
  // Where it is said how many there are to be, none is added.
  BatchLoader alone = openSlow({.workers = 0});
  for (int64_t number = 0; number < 40; ++number)
    ASSERT_THAT(alone.read(number), succeeds());
  EXPECT_EQ(alone.workerCount(), 0);
}
