#include "runtime/base/ThreadPool.h"

#include "runtime/base/CpuQuota.h"

#include <algorithm>
#include <atomic>
#include <climits>
#include <exception>
#include <sched.h>
#include <thread>
#include <vector>

using namespace tcc;
using namespace tcc::runtime;

namespace {

/// The gate of a pool, one word: a job number, whether it is open to workers,
/// and how many are inside. The caller closes the gate when all tasks are
/// claimed and waits only for workers inside it, never for sleeping ones.
constexpr uint64_t kOpen = 1;
constexpr uint64_t kInside = 2; // one worker inside
constexpr uint64_t kInsideMask = 0xfffe;
constexpr uint64_t kJob = 0x10000; // one job

/// How often a caller looks for the others' end before it yields.
constexpr int kSpins = 1000;

void relax() { __builtin_ia32_pause(); }

} // namespace

struct ThreadPool::Shared {
  std::mutex callers; // one job at a time
  TaskFunction function = nullptr;
  void *argument = nullptr;
  int64_t tasks = 0;
  int64_t grain = 1;
  alignas(64) std::atomic<int64_t> nextTask{0};
  alignas(64) std::atomic<uint64_t> gate{0};
  std::atomic<int> sleepers{0};
  std::atomic<int> limit{INT_MAX}; ///< workers from this number on are parked
  std::atomic<bool> stopping{false};
  std::mutex sleepMutex;
  std::condition_variable wake, unpark;
  std::vector<std::thread> workers;

  void claimTasks(int worker);
  bool waitForJob(uint64_t lastJob, int worker);
  void park(int worker);
  void serve(int worker);
};

void ThreadPool::Shared::claimTasks(int worker) {
  for (;;) {
    int64_t first = nextTask.fetch_add(grain, std::memory_order_relaxed);
    if (first >= tasks)
      return;
    function(argument, first, std::min(first + grain, tasks), worker);
  }
}

/// Until the worker takes part again, or the pool stops. No job wakes it.
void ThreadPool::Shared::park(int worker) {
  std::unique_lock lock(sleepMutex);
  unpark.wait(lock, [&] { return worker < limit.load() || stopping.load(); });
}

/// Returns true when there is a job other than `lastJob`, false to stop.
bool ThreadPool::Shared::waitForJob(uint64_t lastJob, int worker) {
  auto hasJob = [&] {
    return gate.load() / kJob != lastJob || stopping.load();
  };
  if (worker >= limit.load())
    park(worker);
  for (int spin = 0; spin < kIdleSpins; ++spin) {
    if (hasJob())
      return !stopping.load();
    relax();
  }
  std::unique_lock lock(sleepMutex);
  ++sleepers; // before the check: the caller stores the gate, then reads this
  wake.wait(lock, hasJob);
  --sleepers;
  return !stopping.load();
}

void ThreadPool::Shared::serve(int worker) {
  uint64_t lastJob = 0;
  while (waitForJob(lastJob, worker)) {
    uint64_t seen = gate.load();
    lastJob = seen / kJob;
    // A job that is seen comes after the limit that is set for it.
    while ((seen & kOpen) && seen / kJob == lastJob && worker < limit.load()) {
      if (!gate.compare_exchange_weak(seen, seen + kInside))
        continue;
      claimTasks(worker);
      gate.fetch_sub(kInside);
      break;
    }
  }
}

ThreadPool::ThreadPool(int threads) : shared(std::make_unique<Shared>()) {
  threads = std::clamp(threads, 1, 1024);
  shared->workers.reserve(threads - 1);
  for (; threadCount < threads; ++threadCount) {
    try {
      shared->workers.emplace_back(
          [this, worker = threadCount] { shared->serve(worker); });
    } catch (const std::exception &) { // neither a thread nor memory for one
      return;                          // fewer give the same results
    }
  }
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard lock(shared->sleepMutex);
    shared->stopping = true;
  }
  shared->wake.notify_all();
  shared->unpark.notify_all();
  for (std::thread &worker : shared->workers)
    worker.join();
}

void ThreadPool::limit(int threads) {
  {
    std::lock_guard lock(shared->sleepMutex);
    shared->limit = std::max(threads, 1);
  }
  shared->unpark.notify_all();
}

bool ThreadPool::isAwake() const { return shared->sleepers.load() == 0; }

void ThreadPool::run(int64_t tasks, int64_t grain, TaskFunction function,
                     void *argument) {
  grain = std::max<int64_t>(grain, 1);
  std::lock_guard lock(shared->callers);
  if (std::min(threadCount, shared->limit.load()) == 1 || tasks <= grain) {
    for (int64_t first = 0; first < tasks; first += grain)
      function(argument, first, std::min(first + grain, tasks), 0);
    return;
  }
  Shared &job = *shared;
  job.function = function;
  job.argument = argument;
  job.tasks = tasks;
  job.grain = grain;
  job.nextTask.store(0, std::memory_order_relaxed);
  job.gate.store((job.gate.load() / kJob + 1) * kJob | kOpen);
  if (job.sleepers.load() > 0) {
    std::lock_guard sleepLock(job.sleepMutex);
    job.wake.notify_all();
  }
  job.claimTasks(0);
  job.gate.fetch_and(~kOpen);
  for (int spin = 0; job.gate.load() & kInsideMask; ++spin) {
    relax();
    if (spin > kSpins)
      std::this_thread::yield();
  }
}

int runtime::defaultThreadCount() {
  int count = 0;
  cpu_set_t affinity;
  if (sched_getaffinity(0, sizeof(affinity), &affinity) == 0)
    count = CPU_COUNT(&affinity);
  else
    count = static_cast<int>(std::thread::hardware_concurrency());
  if (int quota = cpuQuota())
    count = std::min(count, quota);
  return std::max(count, 1);
}
