#include "runtime/data/BatchLoader.h"

#include "runtime/base/SharingTrial.h"
#include "runtime/base/ThreadPool.h"
#include "runtime/package/Format.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <ctime>
#include <exception>
#include <limits>
#include <mutex>
#include <new>
#include <thread>

using namespace tcc;
using namespace tcc::runtime;

namespace {

using Clock = std::chrono::steady_clock;

using Parts = std::vector<std::span<std::byte>>;

/// Places [first, last) of batch `number` in a slot.
struct Range {
  int64_t number, first, last;
};

/// A thread that reads samples.
struct Reader {
  uint32_t track = kUpdateTrack;
  Parts parts = {}; ///< of a sample, one for each tensor
};

double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Seconds that this thread has used a CPU.
double readOwnSeconds() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

/// A batch in memory. Threads claim ranges of its places and fill them.
struct Slot {
  std::vector<Tensor> tensors;
  std::vector<TensorView> views;
  std::vector<int64_t> samples; ///< at each place
  int64_t number = -1;          ///< of the batch; -1: none
  int64_t epoch = 0;
  int64_t counted = 0; ///< places before it count: the others fill it up
  int64_t claimed = 0, filled = 0; ///< places
  Status status;       ///< why the range that begins at `failed` is not filled
  int64_t failed = -1; ///< the first place of those; -1: none

  int64_t size() const { return static_cast<int64_t>(samples.size()); }
  bool isIdle() const { return claimed == filled; }
  bool isFilled() const { return number >= 0 && filled == size(); }
  bool isOpen() const { return number >= 0 && claimed < size(); }
};

/// Whether reading is worth a thread: of some batches in a row many, as one may
/// only have been interrupted, were waited for a share of the time that passed.
class WaitShare {
public:
  /// Adds a batch that was waited for, and of which the next one was asked for
  /// `passed` seconds after the one before. True once there are enough of them
  /// to say, and too many took too long.
  bool add(double waited, double passed) {
    constexpr int kBatches = 16, kMany = 6;
    constexpr double kMostShare = 0.02, kLeastSeconds = 20e-6;
    late += waited > kLeastSeconds && waited > kMostShare * passed;
    if (++batches < kBatches)
      return false;
    bool areMany = late >= kMany;
    *this = WaitShare();
    return areMany;
  }

private:
  int batches = 0, late = 0;
};

} // namespace

class BatchLoader::Impl {
public:
  Impl(std::unique_ptr<SampleSource> source,
       std::span<const BatchTensor> tensors, BatchOrder order,
       const LoaderOptions &options)
      : source(std::move(source)), order(std::move(order)), options(options),
        tensors(tensors.begin(), tensors.end()) {}
  ~Impl();

  Status open();
  Status read(int64_t number, std::span<const int64_t> next);
  size_t depth() const { return slots.size() - 1; }
  void timeReading() {
    std::unique_lock lock(mutex);
    isTimed = true;
  }
  void trace(HostTrace &trace) { tracing = &trace; }
  ReadingTime readingTime() {
    std::unique_lock lock(mutex);
    return reading;
  }

  std::unique_ptr<SampleSource> source;
  BatchOrder order;
  LoaderOptions options;
  std::vector<BatchTensor> tensors;
  /// One without workers.
  std::vector<std::unique_ptr<Slot>> slots;
  Slot *current = nullptr; ///< what was read last; at first, nothing was
  double waited = 0;
  std::vector<std::thread> workers;
  SharingTrial trial{std::numeric_limits<double>::infinity()};

private:
  Status addSlot();
  void addWorker();
  void begin(Slot &slot, int64_t number);
  Slot *find(int64_t number);
  void prepare(std::unique_lock<std::mutex> &lock, int64_t number,
               std::span<const int64_t> next);
  Status fill(Slot &slot, const Range &range, Parts &parts);
  Status fillTimed(Slot &slot, const Range &range, Reader &reader,
                   ReadingTime &took);
  void add(const ReadingTime &took);
  void mix(const Slot &slot, int64_t number, const Reader &reader);
  void fillSome(std::unique_lock<std::mutex> &lock, Slot &slot, Reader &reader);
  Status readAlone(int64_t number);
  Status readAhead(int64_t number, std::span<const int64_t> next);
  void work(uint32_t track);
  void adapt(double wait);
  void trySparing(double passed);

  std::optional<size_t> weights; ///< the tensor of the samples' weights
  Reader self;                   ///< the thread that reads batches
  std::vector<Slot *> wanted;    ///< in the order in which they are needed
  std::mutex mutex;
  std::condition_variable opened; ///< places to claim, or the end
  std::condition_variable done;   ///< places were filled
  bool isOver = false;
  std::atomic<bool> isTimed = false;
  std::atomic<HostTrace *> tracing = nullptr;
  ReadingTime reading; ///< once it is timed
  WaitShare share;
  double busySeconds = 0;     ///< that workers have read samples
  double passedSeconds = 0;   ///< since there are some
  Clock::time_point returned; ///< from the last `read`
};

static bool hasWeights(const BatchTensor &tensor) {
  return tensor.isWeight() && tensor.dtype == DType::f32;
}

bool runtime::haveWeights(std::span<const BatchTensor> tensors) {
  return std::ranges::any_of(tensors, hasWeights);
}

//===----------------------------------------------------------------------===//
// Slots
//===----------------------------------------------------------------------===//

/// The shape of the most elements.
static std::vector<int64_t> largestOf(const BatchTensor &tensor) {
  if (tensor.variants.empty())
    return tensor.shape;
  return *std::ranges::max_element(tensor.variants, {}, [](const auto &shape) {
    return elementCount(shape);
  });
}

Status BatchLoader::Impl::addSlot() {
  auto slot = std::make_unique<Slot>();
  for (const BatchTensor &tensor : tensors) {
    auto allocated = Tensor::allocate(tensor.dtype, largestOf(tensor));
    if (!allocated.ok())
      return allocated.takeStatus();
    slot->tensors.push_back(std::move(*allocated));
  }
  for (const Tensor &tensor : slot->tensors)
    slot->views.push_back({tensor.data.data(), tensor.dtype, tensor.shape});
  slots.push_back(std::move(slot));
  return Status();
}

Status BatchLoader::Impl::open() {
  auto found = std::ranges::find_if(tensors, hasWeights);
  if (found != tensors.end())
    weights = size_t(found - tensors.begin());
  if (order.batchesPerEpoch() == 0)
    return makeError(Code::Usage, "the data have ", order.sampleCount(),
                     " samples, a batch takes ",
                     tensors.empty() ? 0 : tensors[0].shape[0]);
  size_t count = options.workers.value_or(0) ? std::max(options.slots, 2) : 1;
  while (slots.size() < count)
    if (Status status = addSlot(); !status.ok())
      return status;
  current = slots.front().get();
  for (int i = 0; i < options.workers.value_or(0); ++i)
    addWorker();
  returned = Clock::now();
  return Status();
}

/// The slot has nothing under way.
void BatchLoader::Impl::begin(Slot &slot, int64_t number) {
  BatchOrder::Batch batch = order.at(number);
  slot.number = number;
  slot.epoch = batch.epoch;
  slot.claimed = slot.filled = 0;
  slot.status = Status();
  slot.failed = -1;
  slot.counted = order.countedOf(batch);
  order.list(batch, slot.samples);
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].variants.empty())
      continue;
    slot.tensors[i].shape = tensors[i].variants[order.variantOf(batch)];
    slot.views[i].shape = slot.tensors[i].shape;
  }
}

Slot *BatchLoader::Impl::find(int64_t number) {
  for (const std::unique_ptr<Slot> &slot : slots)
    if (slot->number == number)
      return slot.get();
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Samples
//===----------------------------------------------------------------------===//

/// An image may claim more pixels than there is memory for.
static Status readSample(const SampleSource &source, int64_t epoch,
                         int64_t number, SampleParts parts) {
  try {
    return source.read(epoch, number, parts);
  } catch (const std::bad_alloc &) {
    return makeError(Code::OutOfMemory, "there is no memory to read sample ",
                     number);
  }
}

/// The slot's own number may change meanwhile, where nobody wants the batch.
Status BatchLoader::Impl::fill(Slot &slot, const Range &range, Parts &parts) {
  parts.resize(slot.tensors.size());
  for (int64_t place = range.first; place < range.last; ++place) {
    for (size_t i = 0; i < parts.size(); ++i) {
      const TensorView &view = slot.views[i];
      size_t bytes =
          bytesOf(view.dtype, view.shape).value_or(0) / slot.samples.size();
      parts[i] = slot.tensors[i].data.span().subspan(place * bytes, bytes);
    }
    Status status = readSample(*source, slot.epoch, slot.samples[place], parts);
    if (!status.ok())
      return status;
    if (weights && place >= slot.counted)
      std::memset(parts[*weights].data(), 0, sizeof(float));
  }
  return Status();
}

Status BatchLoader::Impl::fillTimed(Slot &slot, const Range &range,
                                    Reader &reader, ReadingTime &took) {
  bool isAsked = isTimed;
  HostTimer timer(tracing, HostWork::ReadSamples, reader.track, range.number);
  double before = isAsked ? readOwnSeconds() : 0;
  Status status = fill(slot, range, reader.parts);
  took.passed = timer.seconds();
  took.onCpu = isAsked ? readOwnSeconds() - before : 0;
  return status;
}

void BatchLoader::Impl::add(const ReadingTime &took) {
  if (!isTimed)
    return;
  reading.passed += took.passed;
  reading.onCpu += took.onCpu;
}

void BatchLoader::Impl::mix(const Slot &slot, int64_t number,
                            const Reader &reader) {
  HostTimer timer(tracing, HostWork::MixSamples, reader.track, number);
  options.mixer->mix(number, slot.views);
}

/// Claims places of an open slot and fills them, unlocked meanwhile.
void BatchLoader::Impl::fillSome(std::unique_lock<std::mutex> &lock, Slot &slot,
                                 Reader &reader) {
  // Few enough that several threads end at about the same time.
  int64_t threads = static_cast<int64_t>(workers.size()) + 1;
  int64_t count = std::max<int64_t>(slot.size() / (4 * threads), 1);
  int64_t first = slot.claimed;
  int64_t last = slot.claimed = std::min(first + count, slot.size());
  int64_t number = slot.number;
  lock.unlock();
  ReadingTime took;
  Status status = fillTimed(slot, {number, first, last}, reader, took);
  lock.lock();
  add(took);
  busySeconds += &reader == &self ? 0 : took.passed;
  if (!status.ok() && (slot.failed < 0 || first < slot.failed)) {
    slot.failed = first;
    slot.status = std::move(status);
  }
  // All others are done: nobody else has the batch until this range counts.
  bool isLast = slot.filled + last - first == slot.size();
  if (isLast && slot.failed < 0 && slot.number >= 0 && options.mixer) {
    lock.unlock();
    mix(slot, number, reader);
    lock.lock();
  }
  slot.filled += last - first;
  if (slot.isIdle())
    done.notify_all();
}

void BatchLoader::Impl::work(uint32_t track) {
  Reader reader = {track};
  std::unique_lock lock(mutex);
  while (!isOver) {
    auto open = std::ranges::find_if(wanted, &Slot::isOpen);
    if (open == wanted.end())
      opened.wait(lock);
    else
      fillSome(lock, **open, reader);
  }
}

/// Gives slots to the batches that are wanted, as far as there are any; what
/// others have is no longer.
void BatchLoader::Impl::prepare(std::unique_lock<std::mutex> &lock,
                                int64_t number, std::span<const int64_t> next) {
  std::vector<int64_t> numbers = {number};
  for (int64_t later : next)
    if (numbers.size() < slots.size() &&
        std::ranges::find(numbers, later) == numbers.end())
      numbers.push_back(later);
  std::vector<Slot *> free;
  for (const std::unique_ptr<Slot> &slot : slots)
    if (std::ranges::find(numbers, slot->number) == numbers.end()) {
      slot->number = -1;
      free.push_back(slot.get());
    }
  wanted.clear();
  for (int64_t each : numbers) {
    Slot *slot = find(each);
    if (!slot) {
      slot = free.back();
      free.pop_back();
      done.wait(lock, [&] { return slot->isIdle(); });
      begin(*slot, each);
    }
    wanted.push_back(slot);
  }
  opened.notify_all();
}

/// Without workers.
Status BatchLoader::Impl::readAlone(int64_t number) {
  current = slots.front().get();
  if (current->isFilled() && current->number == number)
    return Status();
  begin(*current, number);
  ReadingTime took;
  Status status = fillTimed(*current, {number, 0, current->size()}, self, took);
  add(took);
  if (status.ok() && options.mixer)
    mix(*current, number, self);
  current->claimed = current->filled = current->size();
  if (!status.ok())
    current->number = -1;
  return status;
}

Status BatchLoader::Impl::readAhead(int64_t number,
                                    std::span<const int64_t> next) {
  std::unique_lock lock(mutex);
  prepare(lock, number, next);
  current = wanted.front();
  // While others fill the last places of this batch, the next ones are begun.
  while (!current->isFilled())
    if (auto open = std::ranges::find_if(wanted, &Slot::isOpen);
        open != wanted.end())
      fillSome(lock, **open, self);
    else
      done.wait(lock);
  // What failed is read anew when it is asked for again.
  Status status = std::move(current->status);
  if (!status.ok())
    current->number = -1;
  return status;
}

Status BatchLoader::Impl::read(int64_t number, std::span<const int64_t> next) {
  HostTimer timer(tracing, HostWork::AwaitBatch, kUpdateTrack, number);
  Status status = workers.empty() ? readAlone(number) : readAhead(number, next);
  double wait = timer.seconds();
  waited += wait;
  adapt(wait);
  return status;
}

//===----------------------------------------------------------------------===//
// Workers
//===----------------------------------------------------------------------===//

/// Where the system has no more threads there are fewer.
void BatchLoader::Impl::addWorker() {
  std::unique_lock lock(mutex);
  try {
    auto track = static_cast<uint32_t>(kFirstWorkerTrack + workers.size());
    workers.emplace_back([this, track] { work(track); });
  } catch (const std::exception &) {
    options.workers = static_cast<int>(workers.size());
  }
}

/// Workers that read now and then need no CPU of their own.
void BatchLoader::Impl::trySparing(double passed) {
  constexpr double kLeastBusy = 0.2;
  constexpr double kMicroseconds = 1e6;
  passedSeconds += passed;
  std::unique_lock lock(mutex);
  if (busySeconds >= kLeastBusy * passedSeconds)
    trial.add(passed * kMicroseconds);
}

/// Adds a worker where batches are waited for, while nothing says how many
/// there are to be.
void BatchLoader::Impl::adapt(double wait) {
  double passed = secondsSince(returned);
  returned = Clock::now();
  if (!options.workers && !workers.empty())
    trySparing(passed);
  if (options.workers || !share.add(wait, passed) ||
      static_cast<int>(workers.size()) >= defaultThreadCount() - 1)
    return;
  while (static_cast<int>(slots.size()) < std::max(options.slots, 2))
    if (!addSlot().ok()) // no memory: as before
      return;
  addWorker();
}

BatchLoader::Impl::~Impl() {
  {
    std::unique_lock lock(mutex);
    isOver = true;
    opened.notify_all();
  }
  for (std::thread &worker : workers)
    worker.join();
}

//===----------------------------------------------------------------------===//
// The loader
//===----------------------------------------------------------------------===//

BatchLoader::BatchLoader(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
BatchLoader::BatchLoader(BatchLoader &&) noexcept = default;
BatchLoader &BatchLoader::operator=(BatchLoader &&) noexcept = default;
BatchLoader::~BatchLoader() = default;

Result<BatchLoader> BatchLoader::create(std::unique_ptr<SampleSource> source,
                                        std::span<const BatchTensor> tensors,
                                        BatchOrder order,
                                        const LoaderOptions &options) {
  auto impl = std::make_unique<Impl>(std::move(source), tensors,
                                     std::move(order), options);
  if (Status status = impl->open(); !status.ok())
    return status;
  return BatchLoader(std::move(impl));
}

const BatchOrder &BatchLoader::order() const { return impl->order; }
size_t BatchLoader::depth() const { return impl->depth(); }

Status BatchLoader::read(int64_t number, std::span<const int64_t> next) {
  return impl->read(number, next);
}

std::span<const TensorView> BatchLoader::batch() const {
  return impl->current->views;
}

double BatchLoader::takeWait() { return std::exchange(impl->waited, 0); }

void BatchLoader::timeReading() { impl->timeReading(); }

void BatchLoader::trace(HostTrace &trace) { impl->trace(trace); }

ReadingTime BatchLoader::readingTime() const { return impl->readingTime(); }

int BatchLoader::sparedThreads() const {
  return impl->workers.empty() || impl->trial.isShared() ? 0 : 1;
}

int BatchLoader::workerCount() const {
  return static_cast<int>(impl->workers.size());
}

/// Little-endian: the low bytes come first.
static int64_t readInteger(std::span<const std::byte> bytes, bool isSigned) {
  bool isNegative =
      isSigned && (bytes.back() & std::byte(0x80)) != std::byte(0);
  int64_t value = isNegative ? -1 : 0;
  std::memcpy(&value, bytes.data(), bytes.size());
  return value;
}

std::optional<int64_t> BatchLoader::findSample(size_t tensor,
                                               int64_t number) const {
  const Slot &slot = *impl->current;
  const Tensor &searched = slot.tensors[tensor];
  const DTypeTraits &traits = traitsOf(searched.dtype);
  if (traits.kind != DTypeKind::Signed && traits.kind != DTypeKind::Unsigned)
    return std::nullopt;
  uint64_t count = elementCount(searched.shape);
  for (size_t i = 0; i < count; ++i)
    if (readInteger(
            searched.data.span().subspan(i * traits.bytes, traits.bytes),
            traits.kind == DTypeKind::Signed) == number)
      return slot.samples[i / (count / slot.samples.size())];
  return std::nullopt;
}
