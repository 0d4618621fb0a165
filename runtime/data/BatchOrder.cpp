#include "runtime/data/BatchOrder.h"

#include "runtime/data/SplitMix64.h"

#include <algorithm>

using namespace tcc;
using namespace tcc::runtime;

BatchOrder::BatchOrder(int64_t sampleCount, int64_t batchSize,
                       const SampleOrder &order, bool fills)
    : shuffles(order.isShuffled()), batchOrder(1, 0, /*shuffles=*/false) {
  buckets.push_back({0, batchSize, {}, sampleCount, sampleCount, order});
  count(fills);
}

/// Orders of one seed must not repeat each other.
static uint64_t seedOf(uint64_t seed, size_t bucket) {
  return SplitMix64::of(seed, 0, bucket + 1).next();
}

BatchOrder::BatchOrder(SortedSamples sorted, uint64_t seed, bool shuffles,
                       bool fills)
    : shuffles(shuffles), batchOrder(1, 0, /*shuffles=*/false),
      padding(sorted.room ? double(sorted.padding) / double(sorted.room) : 0) {
  int64_t left = 0;
  for (SampleBucket &bucket : sorted.buckets) {
    auto own = int64_t(bucket.samples.size());
    SampleOrder order(own + left, seedOf(seed, buckets.size()), shuffles);
    buckets.push_back({bucket.variant, bucket.batchSize,
                       std::move(bucket.samples), own, own + left, order});
    left = (own + left) % bucket.batchSize;
  }
  count(fills);
  batchOrder = SampleOrder(batches, seed, shuffles);
}

void BatchOrder::count(bool fills) {
  for (Bucket &bucket : buckets) {
    bool isLast = &bucket == &buckets.back();
    bucket.batches = bucket.count / bucket.batchSize;
    leftOut = bucket.count % bucket.batchSize;
    if (isLast && fills && leftOut > 0) {
      ++bucket.batches;
      leftOut = 0;
    }
    samples += bucket.ownCount;
    bucket.end = batches += bucket.batches;
  }
}

BatchOrder::Batch BatchOrder::at(int64_t number) const {
  int64_t epoch = number / batches;
  int64_t place = batchOrder.of(epoch).at(number % batches);
  auto found = std::ranges::upper_bound(buckets, place, {}, &Bucket::end);
  int64_t own = place - (found->end - found->batches);
  return {epoch, size_t(found - buckets.begin()), own * found->batchSize};
}

int64_t BatchOrder::countedOf(const Batch &batch) const {
  const Bucket &bucket = buckets[batch.bucket];
  return std::min(bucket.batchSize, bucket.count - batch.first);
}

/// The sample with this index in a bucket: those that are left of the one
/// before follow its own.
int64_t BatchOrder::sampleOf(size_t number, int64_t epoch,
                             int64_t index) const {
  const Bucket &bucket = buckets[number];
  if (index < bucket.ownCount)
    return bucket.own.empty() ? index : bucket.own[size_t(index)];
  const Bucket &before = buckets[number - 1];
  int64_t place = before.batches * before.batchSize + index - bucket.ownCount;
  return sampleOf(number - 1, epoch, before.order.of(epoch).at(place));
}

void BatchOrder::list(const Batch &batch, std::vector<int64_t> &numbers) const {
  const Bucket &bucket = buckets[batch.bucket];
  EpochOrder order = bucket.order.of(batch.epoch);
  numbers.resize(size_t(bucket.batchSize));
  for (int64_t i = 0; i < bucket.batchSize; ++i)
    numbers[size_t(i)] = sampleOf(batch.bucket, batch.epoch,
                                  order.at((batch.first + i) % bucket.count));
}
