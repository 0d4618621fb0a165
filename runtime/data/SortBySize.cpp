#include "runtime/data/SortBySize.h"

#include "runtime/base/ThreadPool.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <mutex>
#include <tuple>

using namespace tcc;
using namespace tcc::runtime;

namespace {

/// A variant of the tensors.
struct Size {
  size_t variant;
  int64_t batch;
  SampleRoom room;
};

/// Looks at all samples, by several threads.
class Survey {
public:
  using Take = std::function<Status(int64_t, const SampleRoom &)>;

  Survey(const SampleSource &source, bool skipsBad, const Take &take)
      : source(source), skipsBad(skipsBad), take(take) {}

  Status run();

private:
  void look(int64_t number);
  void fail(int64_t number, Status status);

  const SampleSource &source;
  const bool skipsBad;
  const Take &take;
  std::mutex mutex;
  Status failure;             ///< of the first sample that fails
  int64_t failed = INT64_MAX; ///< its number
};

/// Finds the size of each sample.
class Sorter {
public:
  Sorter(std::span<const Size> sizes, int64_t count)
      : sizes(sizes), found(size_t(count), kNone) {}

  /// May be called by several threads, with other numbers.
  Status add(int64_t number, const SampleRoom &needed);
  SortedSamples take() const;

private:
  static constexpr uint16_t kNone = std::numeric_limits<uint16_t>::max();

  const std::span<const Size> sizes;
  std::vector<uint16_t> found; ///< the position of each sample's size
  std::atomic<uint64_t> padding = 0, room = 0;
};

} // namespace

void Survey::fail(int64_t number, Status status) {
  std::unique_lock lock(mutex);
  if (number > failed)
    return;
  failed = number;
  failure = std::move(status);
}

void Survey::look(int64_t number) {
  auto needed = source.needs(number);
  if (!needed.ok()) {
    Status status = needed.takeStatus();
    if (status.code() != Code::BadData || !skipsBad)
      fail(number, std::move(status));
  } else if (Status status = take(number, *needed); !status.ok()) {
    fail(number, std::move(status));
  }
}

Status Survey::run() {
  constexpr int64_t kGrain = 64;
  ThreadPool pool(defaultThreadCount());
  auto look = [](void *survey, int64_t first, int64_t last, int /*worker*/) {
    for (int64_t number = first; number < last; ++number)
      static_cast<Survey *>(survey)->look(number);
  };
  pool.run(source.sampleCount(), kGrain, look, this);
  return std::move(failure);
}

Status runtime::lookAtAll(const SampleSource &source, bool skipsBad,
                          const Survey::Take &take) {
  return Survey(source, skipsBad, take).run();
}

Status Sorter::add(int64_t number, const SampleRoom &needed) {
  auto hasRoom = [&](const Size &size) {
    return std::ranges::equal(needed, size.room, std::ranges::less_equal());
  };
  auto size = std::ranges::find_if(sizes, hasRoom);
  if (size == sizes.end())
    return makeError(Code::Internal, "sample ", number,
                     " is larger than the largest");
  found[size_t(number)] = uint16_t(size - sizes.begin());
  for (size_t i = 0; i < needed.size(); ++i)
    if (sizes.front().room[i] != sizes.back().room[i]) {
      padding += size->room[i] - needed[i];
      room += size->room[i];
    }
  return Status();
}

SortedSamples Sorter::take() const {
  SortedSamples sorted = {{}, padding, room};
  for (const Size &size : sizes)
    sorted.buckets.push_back({size.variant, size.batch, {}});
  for (size_t i = 0; i < found.size(); ++i)
    if (found[i] != kNone)
      sorted.buckets[found[i]].samples.push_back(uint32_t(i));
  return sorted;
}

/// The room of a sample in a variant.
static SampleRoom roomOf(std::span<const BatchTensor> tensors, size_t variant) {
  SampleRoom room;
  for (const BatchTensor &tensor : tensors) {
    auto shape = std::span(tensor.variants[variant]).subspan(1);
    room.push_back(bytesOf(tensor.dtype, shape).value_or(0));
  }
  return room;
}

/// What follows a sample's numbers is at the end of its first axis.
static Status checkAxes(std::span<const BatchTensor> tensors) {
  constexpr ptrdiff_t kFirst = 2; // axis that all variants have alike
  for (const BatchTensor &tensor : tensors)
    for (const auto &shape : tensor.variants)
      if (shape.size() > 2 && !std::equal(shape.begin() + kFirst, shape.end(),
                                          tensor.shape.begin() + kFirst))
        return makeError(Code::Usage, "'", tensor.name,
                         "' has several sizes in axes after axis 1, where no "
                         "sample can be filled up");
  return Status();
}

static Result<std::vector<Size>>
sortVariants(std::span<const BatchTensor> tensors) {
  std::vector<Size> sizes;
  for (size_t i = 0; i < tensors[0].variants.size(); ++i)
    sizes.push_back({i, tensors[0].variants[i][0], roomOf(tensors, i)});
  std::ranges::sort(sizes, {}, [](const Size &size) {
    return std::tuple(size.room, -size.batch, size.variant);
  });
  auto isRepeated = [](const Size &a, const Size &b) {
    return a.room == b.room;
  };
  sizes.erase(std::ranges::unique(sizes, isRepeated).begin(), sizes.end());
  for (size_t i = 1; i < sizes.size(); ++i)
    if (!std::ranges::equal(sizes[i - 1].room, sizes[i].room,
                            std::ranges::less_equal()))
      return makeError(Code::Usage, "variants ", sizes[i - 1].variant, " and ",
                       sizes[i].variant,
                       " of the package: neither has room "
                       "for all samples of the other");
  return sizes;
}

Result<SortedSamples> runtime::sortBySize(const SampleSource &source,
                                          std::span<const BatchTensor> tensors,
                                          bool skipsBad) {
  if (source.sampleCount() > std::numeric_limits<uint32_t>::max())
    return makeError(Code::Usage, "there are ", source.sampleCount(),
                     " samples, and variants of several sizes take at most ",
                     std::numeric_limits<uint32_t>::max());
  if (Status status = checkAxes(tensors); !status.ok())
    return status;
  auto sizes = sortVariants(tensors);
  if (!sizes.ok())
    return sizes.takeStatus();
  Sorter sorter(*sizes, source.sampleCount());
  auto add = [&](int64_t number, const SampleRoom &needed) {
    return sorter.add(number, needed);
  };
  if (Status status = lookAtAll(source, skipsBad, add); !status.ok())
    return status;
  return sorter.take();
}
