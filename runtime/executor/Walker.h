//===- Walker.h - Walks the commands of an entry point ----------*- C++ -*-===//
#ifndef TCC_RUNTIME_EXECUTOR_WALKER_H
#define TCC_RUNTIME_EXECUTOR_WALKER_H

#include "runtime/executor/LaunchObserver.h"
#include "runtime/executor/Workspace.h"

#include <vector>

namespace tcc::runtime {

/// The addresses and the state of walks over a verified entry. A walk allocates
/// nothing. One thread at a time.
class Walker {
public:
  /// Program and entry outlive the walker.
  Walker(const format::Program &program, const format::Entry &entry,
         std::shared_ptr<Workspace> workspace);

  /// The size slots; the caller sets those of the symbols before a walk.
  std::span<int64_t> slots() { return slotValues; }
  /// Binds all buffers of a storage class and index, but scratch, fault and
  /// views, which the walker places itself.
  void bind(format::StorageClass storage, uint32_t index, void *address);
  void bindState(uint32_t index, void *current, void *next);

  /// A stream of the caller: see Run::caller.
  void setCaller(void *stream) { current.caller = stream; }

  /// The memory of arena and variables that every walk uses, in the order of
  /// first uses; none if there are sizes to compute.
  std::vector<std::span<std::byte>> workingSet() const;

  Status follow() { return stream.follow(current); }
  /// These give it all to the stream, in this order.
  Status upload(void *to, const void *from, size_t bytes) {
    return stream.upload(current, to, from, bytes);
  }
  Status walk();
  Status download(void *to, const void *from, size_t bytes) {
    return stream.download(to, from, bytes);
  }
  Status seal() { return stream.seal(current); }
  /// A bad index that a launch met is an error that names its node.
  Status finish() { return checkFault(stream.finish(current)); }
  void drain() { stream.drain(); }
  /// The bad index that made the last walk fail, if one did.
  std::optional<int64_t> badIndex() const {
    return current.fault ? std::optional(current.fault->index) : std::nullopt;
  }
  void forgetFault() { current.fault.reset(); }
  /// From now on walks count the operations of all their launches.
  void countFlops() { countsFlops = true; }
  /// Operations of the last walk, if they are counted: see Run::flops.
  double flops() const { return current.flops; }

  Stream &getStream() { return stream; }
  /// Memory of the device that no walk finds anything in.
  std::span<std::byte> arena() const { return workspace->arena.span(); }
  /// Null for none; outlives the walks.
  void setObserver(LaunchObserver *newObserver);
  /// Commands of the entry, those inside others included.
  size_t commandCount() const { return steps.size(); }
  /// The command of that number: see TraceEvent.
  const format::Command &command(uint32_t number) const {
    return *steps[number].command;
  }
  void addPlanned(PlannedMemory &planned) const {
    workspace->addPlanned(planned);
  }

private:
  struct Visitor;
  struct Place {
    uint32_t
        number; ///< among the entry's commands, each before those inside it
    uint32_t lane;
  };
  /// Where a buffer lies in one that is placed.
  struct Location {
    uint32_t root;
    int64_t offset; ///< bytes
  };
  /// A launch with the sizes that it has, and without addresses.
  struct SizedLaunch {
    const format::Launch *launch = nullptr;
    Dispatch dispatch = {};
    std::vector<Location> buffers = {};
    std::vector<int64_t> sizes = {}; ///< the dispatch has a view of them
    std::vector<Alternative> alternatives = {}; ///< likewise
  };
  struct Step {
    const format::Command *command;
    uint32_t extent; ///< how many commands it is, with those inside it
    /// Index into `fixedLaunches`; -1 for all but launches whose sizes and
    /// views are constants.
    int32_t fixedLaunch = -1;
  };

  uint32_t laneOf(const format::Command &command) const;
  void place();
  void fixLaunches();
  bool isFixed(const format::Launch &launch) const;

  Status runBlock(const format::Block &block, uint32_t first);
  Status measure(const format::Launch &launch, Place place,
                 SizedLaunch &sized) const;
  void measureWork(SizedLaunch &sized) const;
  Status launch(const format::Launch &launch, Place place);
  Status dispatch(SizedLaunch &sized);
  Status checkFault(Status status) const;
  Status copy(const format::Copy &copy, Place place);
  template <typename Table> Status exchange(const Table &table, Place place);
  bool holds(uint32_t buffer, uint64_t bytes, uint64_t times) const;
  Status setSize(const format::SetSize &set);
  Status readSize(const format::ReadSize &read);
  Status readCondition(uint32_t buffer, bool &isTrue);
  Status branch(const format::If &branch, uint32_t number);
  Status loop(const format::Loop &loop, uint32_t number);

  Status locate(uint32_t buffer, Location &location) const;
  Status addressOf(uint32_t buffer, std::byte *&address) const;
  Status sizeOf(const format::SizeExpr &expr, int64_t &value) const;

  const format::Entry &entry;
  std::shared_ptr<Workspace> workspace;
  Stream &stream;
  LaunchObserver *observer = nullptr;
  bool countsFlops = false; ///< those of one task, too, whose sizes vary
  Run current;

  std::vector<Step> steps; ///< by the number of the command
  std::vector<SizedLaunch> fixedLaunches;
  SizedLaunch varying; ///< the launch under way that is none of them

  std::vector<int64_t> slotValues;
  std::vector<std::byte *> placed; ///< address of each buffer; null for views
  std::vector<std::vector<uint32_t>> stateBuffers; ///< of each state
  std::vector<void *> arguments; ///< addresses of the launch under way
};

} // namespace tcc::runtime

#endif // TCC_RUNTIME_EXECUTOR_WALKER_H
