//===- Walker.h - Walks the commands of an entry point ----------*- C++ -*-===//
#ifndef TCC_RUNTIME_EXECUTOR_WALKER_H
#define TCC_RUNTIME_EXECUTOR_WALKER_H

#include "runtime/base/Memory.h"
#include "runtime/base/ThreadPool.h"
#include "runtime/executor/LaunchObserver.h"
#include "runtime/package/Format.h"
#include "runtime/package/Program_generated.h"

#include <memory>
#include <span>
#include <vector>

namespace tcc::runtime {

/// The arena and the scratch of workers; shared by walkers of which one runs at
/// a time.
struct Scratch {
  Memory arena;
  Memory workers; ///< one aligned piece per worker

  /// Enough for each of the entries.
  static Result<std::shared_ptr<const Scratch>>
  allocate(std::span<const format::Entry *const> entries, int workers,
           const Allocator &allocator);
};

/// The memory and the state of one walk over a verified entry. All memory is
/// allocated by `create`; `walk` allocates nothing. One thread at a time.
class Walker {
public:
  /// `kernels` are indexed as Program.kernels; all arguments outlive the
  /// walker. Without `scratch`, which is for as many workers, it gets its own.
  static Result<std::unique_ptr<Walker>>
  create(const format::Entry &entry,
         std::span<const format::KernelFunction> kernels, TaskRunner &runner,
         const Allocator &allocator,
         std::shared_ptr<const Scratch> scratch = nullptr);

  /// The size slots; the caller sets those of the symbols before a walk.
  std::span<int64_t> slots() { return slotValues; }
  /// Binds all buffers of a storage class and index, but scratch, fault and
  /// views, which the walker places itself.
  void bind(format::StorageClass storage, uint32_t index, void *address);
  void bindState(uint32_t index, void *current, void *next);

  Status walk();

  /// Null for none; outlives the walks.
  void setObserver(LaunchObserver *newObserver) { observer = newObserver; }
  uint64_t plannedBytes() const {
    return scratch->arena.size() + scratch->workers.size();
  }

private:
  /// What the tasks of one launch share.
  struct Task {
    format::KernelFunction kernel;
    const int64_t *sizes;
    Walker *walker;
    bool mayFault;
  };
  /// The first bad index that a worker saw, by task.
  struct Fault {
    int64_t flagAndValue[2];
    int64_t task;
    int64_t value;
  };

  Walker(const format::Entry &entry,
         std::span<const format::KernelFunction> kernels, TaskRunner &runner)
      : entry(entry), kernels(kernels), runner(runner) {}

  void allocate();
  void measureBlock(const format::Block &block, size_t &buffers,
                    size_t &sizes) const;

  Status runBlock(const format::Block &block);
  Status runCommand(const format::Command &command);
  Status launch(const format::Launch &launch);
  Status gatherArguments(const format::Launch &launch, int64_t tasks);
  Status runTasks(const format::Launch &launch, int64_t tasks);
  Status reportFault(const format::Launch &launch) const;
  Status copy(const format::Copy &copy);
  Status setSize(const format::SetSize &set);
  Status readSize(const format::ReadSize &read);
  Status branch(const format::If &branch);
  Status loop(const format::Loop &loop);

  Status addressOf(uint32_t buffer, std::byte *&address) const;
  Status sizeOf(const format::SizeExpr &expr, int64_t &value) const;
  static void runTask(void *argument, int64_t first, int64_t last, int worker);

  const format::Entry &entry;
  std::span<const format::KernelFunction> kernels;
  TaskRunner &runner;
  LaunchObserver *observer = nullptr;

  std::vector<int64_t> slotValues;
  std::vector<std::byte *> addresses; ///< of each buffer; null for views
  std::vector<std::vector<uint32_t>> stateBuffers; ///< of each state
  std::shared_ptr<const Scratch> scratch;
  size_t workerStride = 0;
  size_t argumentStride = 0;
  std::vector<void *> arguments; ///< of a launch, once per worker
  std::vector<int64_t> sizeArguments;
  std::vector<Fault> faults; ///< per worker
};

} // namespace tcc::runtime

#endif // TCC_RUNTIME_EXECUTOR_WALKER_H
