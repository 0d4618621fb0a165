//===- ThreadPool.h - Threads that claim tasks ------------------*- C++ -*-===//
//
// The compiler fixes the partition of a kernel into tasks; threads only claim
// ranges of them, so that results never depend on the number of threads.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_RUNTIME_BASE_THREADPOOL_H
#define TCC_RUNTIME_BASE_THREADPOOL_H

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>

namespace tcc::runtime {

/// Runs tasks [first, last) as worker `worker` (0 <= worker < threads()).
using TaskFunction = void (*)(void *argument, int64_t first, int64_t last,
                              int worker);

/// How often an idle thread looks for work before it sleeps, some 100
/// microseconds: longer than the pause between two kernels of one program and
/// than most of those that have one task, shorter than a scheduler's tick.
inline constexpr int kIdleSpins = 4000;

/// What a context needs of a pool; an embedder may inject its own.
class TaskRunner {
public:
  virtual ~TaskRunner() = default;
  virtual int threads() const = 0;
  /// Whether the others take part in a call of `run` at once; false if some
  /// have to be woken, which takes as long as small jobs do.
  virtual bool isAwake() const { return true; }
  /// At most so many take part in later calls of `run`: others leave their
  /// processors to whoever needs them. Not during a call.
  virtual void limit(int /*threads*/) {}
  /// Runs all tasks of [0, tasks) once, in ranges of at most `grain`, and
  /// returns when all are done. No two calls of `run` overlap with one worker
  /// number. Callable from any thread, but not from inside a task.
  virtual void run(int64_t tasks, int64_t grain, TaskFunction function,
                   void *argument) = 0;
};

/// min(CPUs of the affinity mask, CPU quota of the control group), at least 1.
int defaultThreadCount();

/// `threads` workers, the caller among them. Idle workers spin for a few
/// microseconds, then sleep.
class ThreadPool final : public TaskRunner {
public:
  /// Fewer threads than asked if the system has no more to give.
  explicit ThreadPool(int threads);
  ~ThreadPool() override;

  int threads() const override { return threadCount; }
  bool isAwake() const override;
  void limit(int threads) override;
  void run(int64_t tasks, int64_t grain, TaskFunction function,
           void *argument) override;

private:
  struct Shared;

  int threadCount = 1;
  std::unique_ptr<Shared> shared;
};

} // namespace tcc::runtime

#endif // TCC_RUNTIME_BASE_THREADPOOL_H
