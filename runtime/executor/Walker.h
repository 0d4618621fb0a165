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

  Stream &getStream() { return stream; }
  /// Null for none; outlives the walks.
  void setObserver(LaunchObserver *newObserver);
  /// The command of that number: see TraceEvent.
  const format::Command &command(uint32_t number) const {
    return *commands[number];
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

  void place();

  Status runBlock(const format::Block &block, uint32_t first);
  Status launch(const format::Launch &launch, Place place);
  Status dispatch(const format::Launch &launch, const Dispatch &dispatch);
  Status checkFault(Status status) const;
  int64_t workOf(const format::SizeExpr *expr) const;
  Status copy(const format::Copy &copy, Place place);
  Status setSize(const format::SetSize &set);
  Status readSize(const format::ReadSize &read);
  Status readCondition(uint32_t buffer, bool &isTrue);
  Status branch(const format::If &branch, uint32_t number);
  Status loop(const format::Loop &loop, uint32_t number);

  Status addressOf(uint32_t buffer, std::byte *&address) const;
  Status sizeOf(const format::SizeExpr &expr, int64_t &value) const;

  const format::Entry &entry;
  std::shared_ptr<Workspace> workspace;
  Stream &stream;
  LaunchObserver *observer = nullptr;
  Run current;

  /// Of each command by its number: how many it is, with those inside it.
  std::vector<uint32_t> extents;
  std::vector<const format::Command *> commands; ///< by number

  std::vector<int64_t> slotValues;
  std::vector<std::byte *> placed; ///< address of each buffer; null for views
  std::vector<std::vector<uint32_t>> stateBuffers; ///< of each state
  std::vector<void *> arguments;                   ///< of a launch
  std::vector<int64_t> sizeArguments;
};

} // namespace tcc::runtime

#endif // TCC_RUNTIME_EXECUTOR_WALKER_H
