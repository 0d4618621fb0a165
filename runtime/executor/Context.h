//===- Context.h - Runs one entry point with bound tensors ------*- C++ -*-===//
#ifndef TCC_RUNTIME_EXECUTOR_CONTEXT_H
#define TCC_RUNTIME_EXECUTOR_CONTEXT_H

#include "runtime/executor/Executable.h"
#include "runtime/executor/Variables.h"
#include "runtime/executor/Walker.h"
#include "runtime/package/DType.h"

#include <optional>

namespace tcc::runtime {

struct ContextOptions {
  format::EntryKind entry = format::EntryKind::main;
  uint16_t variant = 0;         ///< of the entries of this kind
  int threads = 0;              ///< 0: defaultThreadCount()
  TaskRunner *runner = nullptr; ///< replaces the own pool; outlives the context
  std::shared_ptr<Workspace> workspace; ///< for the entry; null: its own
  const Variables *variables = nullptr; ///< outlive the context
  Allocator allocator = systemAllocator();
};

/// A dense row-major tensor in the memory of whoever made the view.
struct TensorView {
  void *data = nullptr;
  DType dtype = DType::f32;
  std::span<const int64_t> shape;
  int device = -1; ///< that the memory is of, as Device::ordinal
};

uint64_t elementCount(std::span<const int64_t> shape);
/// "1x3x224x224"; "scalar" for rank 0.
std::string formatShape(std::span<const int64_t> shape);

/// Arena, states and bindings of one caller. One thread at a time; any number
/// of contexts may share an Executable.
class Context {
public:
  static Result<std::unique_ptr<Context>>
  create(std::shared_ptr<const Executable> executable,
         const ContextOptions &options = {});
  /// Waits for a run that was started and not finished.
  ~Context();

  const Executable &executable() const { return *program; }
  const format::Entry &entry() const { return *signature; }
  size_t inputCount() const { return inputs.size(); }
  size_t outputCount() const { return outputs.size(); }
  std::optional<size_t> findInput(std::string_view name) const;

  /// Binds memory of the caller, read by each later run; a state input copies
  /// its value now. Symbolic dimensions follow from the shapes. What lies in
  /// the host's memory is copied for each run where the device is another; of
  /// the device's memory addresses are multiples of kTensorAlignment.
  Status bindInput(size_t index, const TensorView &tensor);
  /// Binds memory of the caller, written by each later run.
  Status bindOutput(size_t index, void *data, size_t bytes, int device = -1);
  /// The extents that are known before a run must be those of the tensor.
  Status bindOutput(size_t index, const TensorView &tensor);
  /// Fixes a symbolic dimension; needed only where no input's shape tells it.
  Status setDim(std::string_view name, int64_t value);
  /// The shape of an input by the dimensions that are set, and that the bound
  /// inputs tell, so far.
  Result<std::vector<int64_t>> inputShape(size_t index);

  /// A stream of the caller on the device (CUstream), which must outlive its
  /// use here: each later run begins after what it was given before, and what
  /// it is given once the run was started begins after the run. The host's
  /// device has no streams.
  Status setStream(void *stream);

  /// After an error the values of outputs are undefined; so are those of states
  /// that are updated in place.
  Status run();

  /// A copy from the device at the end of a run, to memory of Device::staging.
  struct Download {
    void *to;
    const void *from;
    size_t bytes;
  };
  /// A run in two parts: all calls but `finish` that would use the context are
  /// errors between them. What the inputs are bound to may change meanwhile if
  /// the device is not the host.
  Status start(std::span<const Download> downloads = {});
  Status finish();
  /// The last run's output; valid until the next call of run or bind. For a
  /// state's output it is the state itself, or what `fetchStates` copied.
  TensorView output(size_t index) const;
  /// Copies the states' outputs of the last run to the host, where `output`
  /// needs that.
  Status fetchStates();
  /// Copies output `output` of the last run to the host, if it is a state's.
  Status fetchState(size_t output);
  /// Whether there is such a run.
  bool hasOutputs() const { return isDone; }

  /// All states become zero, of any shape.
  Status resetState();

  Walker &walker() { return *walk; }
  int threads() const { return runner ? runner->threads() : 1; }
  PlannedMemory planned() const;

private:
  struct Input {
    const void *data = nullptr;
    int device = -1;            ///< that `data` is of
    bool isBound = false;       ///< a state: has a first value or was run
    int64_t state = -1;         ///< the StatePair it reads, or -1
    std::vector<int64_t> shape; ///< as bound; a state's: also of the last run
    std::optional<Memory> fixedValue; ///< --input-value
    Memory copy;                      ///< on the device, of what is not there
    size_t copiedBytes = 0;           ///< for each run; 0 if nothing is
  };
  struct Output {
    void *data = nullptr;
    size_t capacity = 0;
    int device = -1; ///< that `data` is of
    bool isBound = false;
    int64_t state = -1;
    std::vector<int64_t> shape;    ///< of the last run
    std::vector<int64_t> expected; ///< of the bound tensor, if it told
    Memory own;                    ///< where the caller bound nothing
    Memory copy;                   ///< on the device, where `data` is not
  };
  struct State {
    Memory first, second; ///< second is empty where updates are in place
    std::byte *current = nullptr, *next = nullptr;
    Memory fetched; ///< in the host's memory, where the device is another
    uint64_t bytes = 0;
  };

  Context(std::shared_ptr<const Executable> executable,
          const format::Entry &entry)
      : program(std::move(executable)), signature(&entry) {}

  Status allocate(const ContextOptions &options);
  Status bindVariables(const Variables *variables);
  Status allocateStates(const Allocator &allocator);
  Status allocateFixed(const Allocator &allocator);
  Status checkIdle() const;
  Status give(std::span<const Download> downloads);
  void forgetRun() { isResolved = isDone = false; }
  Status resolve();
  Status resolveDims();
  void solveDims();
  bool solveInputs(bool areStates);
  bool solveDim(const format::SizeExpr &expr, int64_t extent);
  Status checkDims() const;
  Status checkInput(size_t index) const;
  Status checkOutput(size_t index) const;
  Status checkFixed() const;
  Status checkPlace(std::string_view what, std::string_view name,
                    const TensorView &tensor) const;
  Status setState(State &state, const TensorView &tensor, size_t bytes);
  uint64_t bufferBytes(format::StorageClass storage, size_t index) const;
  Status placeInputs();
  Status placeInput(size_t index);
  Status placeOutput(size_t index);
  Status neededBytes(size_t index, uint64_t &bytes) const;
  Status uploadInputs();
  void keepShape(Input &input, std::span<const int64_t> shape);
  Status measureOutput(size_t index, uint64_t &bytes);
  Status finishOutputs();
  Status finishState(size_t index, size_t bytes);
  Result<uint64_t> maxBytes(const format::TensorSpec &spec);
  std::string describeShape(const format::TensorSpec &spec) const;
  std::string_view inputName(size_t index) const;
  size_t symbolCount() const;

  std::shared_ptr<const Executable> program;
  const format::Entry *signature;
  Allocator allocator;
  std::unique_ptr<ThreadPool> ownPool;
  TaskRunner *runner = nullptr;
  std::unique_ptr<Walker> walk;
  std::vector<Input> inputs;
  std::vector<Output> outputs;
  std::vector<State> states;
  std::vector<std::optional<int64_t>> givenDims; ///< by setDim
  std::vector<std::optional<int64_t>> dims;      ///< resolved
  bool isResolved = false;
  bool isDone = false;     ///< the last call was a run that succeeded
  bool isUnderWay = false; ///< a run is started and not finished
};

} // namespace tcc::runtime

#endif // TCC_RUNTIME_EXECUTOR_CONTEXT_H
