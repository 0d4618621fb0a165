//===- tcc/runtime.hpp - The C++ API of the tcc runtime ---------*- C++ -*-===//
//
// A header-only layer over tcc/runtime.h: handles are owned, failures are
// thrown as tcc::Error. Needs C++17.
//
//   tcc::Package package = tcc::Package::open("model.tcc");
//   tcc::Program program(package);   // immutable, shared by threads
//   tcc::Context context(program);   // one per thread
//   context.bind("image", image.data(), {1, 3, 224, 224});
//   context.run();
//   tcc::Tensor scores = context.output(0);
//
// and of a package compiled with --train:
//
//   tcc::TrainSession session(program);
//   session.bind("image", images.data());  // read by each step
//   session.bind("labels", labels.data());
//   tcc::StepMetrics metrics = session.step();
//
//===----------------------------------------------------------------------===//
#ifndef TCC_RUNTIME_HPP
#define TCC_RUNTIME_HPP

#include "tcc/runtime.h"

#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace tcc {

class Error : public std::runtime_error {
public:
  Error(tcc_code code, const char *message)
      : std::runtime_error(message), errorCode(code) {}
  tcc_code code() const { return errorCode; }

private:
  tcc_code errorCode;
};

/// Throws the failure that a status is, and frees it.
inline void check(tcc_status status) {
  if (!status)
    return;
  Error error(tcc_status_code(status), tcc_status_message(status));
  tcc_status_free(status);
  throw error;
}

/// The tcc_dtype of a C++ element type.
template <typename T> constexpr tcc_dtype dtypeOf() {
  constexpr bool isFloat = std::is_floating_point_v<T>;
  static_assert(std::is_arithmetic_v<T> && sizeof(T) <= 8);
  if constexpr (std::is_same_v<T, bool>)
    return TCC_BOOL;
  else if constexpr (isFloat)
    return sizeof(T) == 4 ? TCC_F32 : TCC_F64;
  else if constexpr (std::is_signed_v<T>)
    return sizeof(T) == 1   ? TCC_I8
           : sizeof(T) == 2 ? TCC_I16
           : sizeof(T) == 4 ? TCC_I32
                            : TCC_I64;
  else
    return sizeof(T) == 1   ? TCC_U8
           : sizeof(T) == 2 ? TCC_U16
           : sizeof(T) == 4 ? TCC_U32
                            : TCC_U64;
}

/// A view of a dense row-major tensor; owns nothing.
class Tensor {
public:
  explicit Tensor(const tcc_tensor &tensor, int device = -1)
      : tensor(tensor), onDevice(device) {}

  tcc_dtype dtype() const { return tensor.dtype; }
  size_t rank() const { return tensor.rank; }
  int64_t extent(size_t axis) const { return tensor.shape[axis]; }
  std::vector<int64_t> shape() const {
    return {tensor.shape, tensor.shape + tensor.rank};
  }
  size_t size() const {
    size_t count = 1;
    for (size_t axis = 0; axis < tensor.rank; ++axis)
      count *= static_cast<size_t>(tensor.shape[axis]);
    return count;
  }
  /// The CUDA device whose memory it is in; -1: the host's.
  int device() const { return onDevice; }
  /// The elements; throws if T is not the tensor's type.
  template <typename T> T *data() const {
    if (dtypeOf<T>() != tensor.dtype)
      throw Error(TCC_USAGE, "the tensor has another element type");
    return static_cast<T *>(tensor.data);
  }
  /// The elements of any type, also those that C++ has not: f16, bf16.
  void *bytes() const { return tensor.data; }
  size_t byteCount() const { return size() * tcc_dtype_size(tensor.dtype); }

private:
  tcc_tensor tensor;
  int onDevice;
};

struct PackageOptions {
  bool verifyWeights = true;
};

class Package {
public:
  static Package open(const std::string &path,
                      const PackageOptions &options = {}) {
    tcc_package_options given = {sizeof(given), !options.verifyWeights};
    tcc_package *opened = nullptr;
    check(tcc_package_open(path.c_str(), &given, &opened));
    return Package(opened);
  }

  /// Metadata of the model.
  std::vector<std::pair<std::string, std::string>> metadata() const {
    std::vector<std::pair<std::string, std::string>> pairs;
    for (size_t i = 0; i < tcc_package_metadata_count(get()); ++i)
      pairs.emplace_back(tcc_package_metadata_key(get(), i),
                         tcc_package_metadata_value(get(), i));
    return pairs;
  }
  std::optional<std::string> findMetadata(const std::string &key) const {
    const char *value = tcc_package_find_metadata(get(), key.c_str());
    return value ? std::optional<std::string>(value) : std::nullopt;
  }

  tcc_package *get() const { return handle.get(); }

private:
  explicit Package(tcc_package *opened) : handle(opened) {}

  struct Release {
    void operator()(tcc_package *package) const {
      tcc_package_release(package);
    }
  };
  std::unique_ptr<tcc_package, Release> handle;
};

struct ProgramOptions {
  std::string weightsFile = {}; ///< safetensors that replace weights
  int threads = 1;
  const tcc_allocator *allocator = nullptr;
  const tcc_log_sink *log = nullptr;
  std::string device = {};    ///< "cpu", "cuda", "cuda:1"; empty: the package's
  std::string tuneCache = {}; ///< what tcc-run tune wrote
};

class Program {
public:
  explicit Program(const Package &package, const ProgramOptions &options = {}) {
    auto orNull = [](const std::string &text) {
      return text.empty() ? nullptr : text.c_str();
    };
    tcc_program_options given = {sizeof(given),
                                 orNull(options.weightsFile),
                                 options.threads,
                                 options.allocator,
                                 options.log,
                                 orNull(options.device),
                                 orNull(options.tuneCache)};
    tcc_program *created = nullptr;
    check(tcc_program_create(package.get(), &given, &created));
    handle.reset(created);
  }

  size_t inputCount() const { return tcc_program_input_count(get()); }
  size_t outputCount() const { return tcc_program_output_count(get()); }
  const tcc_tensor_spec &input(size_t index) const {
    return specOrThrow(tcc_program_input(get(), index));
  }
  const tcc_tensor_spec &output(size_t index) const {
    return specOrThrow(tcc_program_output(get(), index));
  }
  size_t findInput(const std::string &name) const {
    return indexOrThrow(tcc_program_find_input(get(), name.c_str()), name);
  }
  size_t findOutput(const std::string &name) const {
    return indexOrThrow(tcc_program_find_output(get(), name.c_str()), name);
  }

  tcc_program *get() const { return handle.get(); }

private:
  static const tcc_tensor_spec &specOrThrow(const tcc_tensor_spec *spec) {
    if (!spec)
      throw Error(TCC_USAGE, "there is no such input or output");
    return *spec;
  }
  static size_t indexOrThrow(ptrdiff_t index, const std::string &name) {
    if (index < 0)
      throw Error(TCC_USAGE, ("there is no '" + name + "'").c_str());
    return static_cast<size_t>(index);
  }

  struct Release {
    void operator()(tcc_program *program) const {
      tcc_program_release(program);
    }
  };
  std::unique_ptr<tcc_program, Release> handle;
};

struct ContextOptions {
  int threads = 0; ///< 0: min(affinity, CPU quota)
  const tcc_thread_pool *pool = nullptr;
  const tcc_allocator *allocator = nullptr;
};

/// One thread at a time; `program` must outlive the context.
class Context {
public:
  explicit Context(const Program &program, const ContextOptions &options = {})
      : program(&program) {
    tcc_context_options given = {sizeof(given), options.threads, options.pool,
                                 options.allocator};
    tcc_context *created = nullptr;
    check(tcc_context_create(program.get(), &given, &created));
    handle.reset(created);
  }

  /// Binds `data`, read in place by each run.
  template <typename T>
  void bind(size_t input, const T *data, const std::vector<int64_t> &shape) {
    bindBytes(input, data, dtypeOf<T>(), shape);
  }
  template <typename T>
  void bind(const std::string &input, const T *data,
            const std::vector<int64_t> &shape) {
    bind(program->findInput(input), data, shape);
  }
  /// For element types that C++ has not: f16, bf16.
  void bindBytes(size_t input, const void *data, tcc_dtype dtype,
                 const std::vector<int64_t> &shape) {
    tcc_tensor tensor = {const_cast<void *>(data), dtype, shape.size(),
                         shape.data()};
    check(tcc_context_bind_input(get(), input, &tensor));
  }
  /// Binds `count` elements that each run writes.
  template <typename T> void bindOutput(size_t output, T *data, size_t count) {
    if (program->output(output).dtype != dtypeOf<T>())
      throw Error(TCC_USAGE, "the output has another element type");
    bindOutputBytes(output, data, count * sizeof(T));
  }
  void bindOutputBytes(size_t output, void *data, size_t bytes) {
    check(tcc_context_bind_output(get(), output, data, bytes));
  }
  void bind(size_t input, const DLManagedTensor *tensor) {
    check(tcc_context_bind_input_dlpack(get(), input, tensor));
  }
  void bindOutput(size_t output, const DLManagedTensor *tensor) {
    check(tcc_context_bind_output_dlpack(get(), output, tensor));
  }
  void setDim(const std::string &name, int64_t value) {
    check(tcc_context_set_dim(get(), name.c_str(), value));
  }

  /// All that follows is of a variant of the program, 0 at first: each has its
  /// own bindings.
  void setVariant(size_t variant) {
    check(tcc_context_set_variant(get(), variant));
  }
  /// Takes the variant whose inputs have these shapes.
  void chooseVariant(const std::vector<std::vector<int64_t>> &shapes) {
    std::vector<tcc_tensor> inputs;
    for (const std::vector<int64_t> &shape : shapes)
      inputs.push_back({nullptr, TCC_F32, shape.size(), shape.data()});
    check(tcc_context_choose_variant(get(), inputs.data(), inputs.size()));
  }

  void run() { check(tcc_context_run(get())); }
  /// Runs are ordered with this CUstream; see tcc_context_set_stream.
  void setStream(void *stream) { check(tcc_context_set_stream(get(), stream)); }
  /// A run in two parts; nothing else is called between them.
  void start() { check(tcc_context_start(get())); }
  void finish() { check(tcc_context_finish(get())); }

  /// The last run's output; valid until the next call on this context.
  Tensor output(size_t index) const {
    tcc_tensor tensor = {};
    check(tcc_context_output(get(), index, &tensor));
    return Tensor(tensor, tcc_context_output_device(get(), index));
  }
  Tensor output(const std::string &name) const {
    return output(program->findOutput(name));
  }
  void resetState() { tcc_context_reset_state(get()); }
  uint64_t plannedBytes() const { return tcc_context_planned_bytes(get()); }

  tcc_context *get() const { return handle.get(); }

private:
  struct Release {
    void operator()(tcc_context *context) const {
      tcc_context_release(context);
    }
  };
  const Program *program;
  std::unique_ptr<tcc_context, Release> handle;
};

/// See tcc_session_options.
struct RankOptions {
  int ranks = 1, rank = 0;
  const char *rendezvous = nullptr;

  /// What the launcher's environment says.
  static RankOptions launched() { return {TCC_LAUNCHED, 0, nullptr}; }
};

using StepMetrics = tcc_step_metrics;
using Evaluation = tcc_evaluation;
using Collective = tcc_collective;
using Variable = tcc_variable;

/// One thread at a time.
class TrainSession {
public:
  using Callback = std::function<void(const StepMetrics &)>;

  explicit TrainSession(const Program &program,
                        const ContextOptions &options = {},
                        const RankOptions &ranks = {}) {
    tcc_session_options given = {
        sizeof(given), options.threads, options.pool,    options.allocator,
        ranks.ranks,   ranks.rank,      ranks.rendezvous};
    tcc_session *created = nullptr;
    check(tcc_session_create(program.get(), &given, &created));
    handle.reset(created);
    inputCount = program.inputCount();
    shapes.resize(tcc_session_input_count(get()));
    batch.resize(shapes.size());
  }

  /// Binds `data`, read in place by each step, to an input of the model or the
  /// target. Without `shape` it has the shape that was compiled in.
  template <typename T>
  void bind(const std::string &input, const T *data,
            std::vector<int64_t> shape = {}) {
    size_t index = findInput(input);
    const tcc_tensor_spec &spec = *tcc_session_input(get(), index);
    for (size_t axis = shape.size(); axis < spec.rank; ++axis)
      shape.push_back(spec.dims[axis].extent);
    shapes[index] = std::move(shape);
    batch[index] = {const_cast<T *>(data), dtypeOf<T>(), shapes[index].size(),
                    shapes[index].data()};
  }

  /// Binds a tensor, such as one of a loader's batch.
  void bind(const std::string &input, const tcc_tensor &tensor) {
    size_t index = findInput(input);
    shapes[index].assign(tensor.shape, tensor.shape + tensor.rank);
    batch[index] = {tensor.data, tensor.dtype, tensor.rank,
                    shapes[index].data()};
  }

  /// An update from what is bound; throws TCC_NUMERICS where the recipe stops.
  StepMetrics step() {
    StepMetrics metrics;
    check(tcc_session_step(get(), batch.data(), batch.size(), &metrics));
    return metrics;
  }
  void accumulate() {
    check(tcc_session_accumulate(get(), batch.data(), batch.size()));
  }
  StepMetrics apply() {
    StepMetrics metrics;
    check(tcc_session_apply(get(), &metrics));
    return metrics;
  }
  void clearFault() { tcc_session_clear_fault(get()); }
  /// Called after each update; must not throw.
  void setCallback(Callback function) {
    callback = std::make_unique<Callback>(std::move(function));
    auto call = [](void *user, const tcc_step_metrics *metrics) {
      (*static_cast<Callback *>(user))(*metrics);
    };
    tcc_session_set_callback(get(), call, callback.get());
  }
  /// Adds the loss of what is bound to `sum`.
  void evaluate(Evaluation &sum) {
    check(tcc_session_evaluate(get(), batch.data(), batch.size(), &sum));
  }
  int rank() const { return tcc_session_rank(get()); }
  int rankCount() const { return tcc_session_rank_count(get()); }
  /// The number of the batch that the next step takes, among all ranks'.
  int64_t batchNumber() const { return tcc_session_batch_number(get()); }
  /// Makes the sum of this rank's batches that of all ranks.
  void addUp(Evaluation &sum) { check(tcc_session_add_up(get(), &sum)); }
  /// Waits for the others at the end of what ranks do together.
  void close() { check(tcc_session_close(get())); }
  /// Gives all ranks the variables of rank 0.
  void share() { check(tcc_session_share(get())); }
  /// Throws at all ranks where updates did not leave the same variables.
  void compareRanks() { check(tcc_session_compare_ranks(get())); }
  /// What the user should know of the ranks; empty if there is nothing.
  std::string_view ranksNote() const { return tcc_session_ranks_note(get()); }
  /// The last collectives of this rank, the oldest first. Any thread, also
  /// during a step.
  std::vector<Collective> collectives() const {
    std::vector<Collective> calls(TCC_COLLECTIVES_KEPT);
    calls.resize(tcc_session_collectives(get(), calls.data(), calls.size()));
    return calls;
  }
  /// Runs the model on what is bound to its inputs.
  void predict() {
    check(tcc_session_predict(get(), batch.data(), inputCount));
  }
  Tensor output(size_t index) const {
    tcc_tensor tensor = {};
    check(tcc_session_output(get(), index, &tensor));
    return Tensor(tensor);
  }

  size_t variableCount() const { return tcc_session_variable_count(get()); }
  Variable variable(size_t index) const {
    Variable result;
    check(tcc_session_variable(get(), index, &result));
    return result;
  }
  /// All elements of a parameter, gradient or other variable.
  template <typename T> std::vector<T> read(const std::string &name) const {
    size_t index = findVariable(name, dtypeOf<T>());
    Variable spec = variable(index);
    size_t count = 1;
    for (size_t axis = 0; axis < spec.rank; ++axis)
      count *= static_cast<size_t>(spec.shape[axis]);
    std::vector<T> values(count);
    check(tcc_session_read(get(), index, values.data(), count * sizeof(T)));
    return values;
  }
  template <typename T>
  void write(const std::string &name, const std::vector<T> &values) {
    check(tcc_session_write(get(), findVariable(name, dtypeOf<T>()),
                            values.data(), values.size() * sizeof(T)));
  }

  size_t settingCount() const { return tcc_session_setting_count(get()); }
  tcc_setting setting(size_t index) const {
    tcc_setting result;
    check(tcc_session_setting(get(), index, &result));
    return result;
  }
  /// A word, a number, numbers or a bool: `set("schedule.kind", "cosine")`,
  /// `set("lr", 0.1)`, `set("betas", {0.9, 0.95})`,
  /// `set("schedule.three_phase", true)`. `key` may be a pattern.
  void set(const std::string &key, const std::string &value) {
    check(tcc_session_set(get(), key.c_str(), value.c_str()));
  }
  void set(const std::string &key, double number) {
    set(key, std::vector<double>{number});
  }
  void set(const std::string &key, const std::vector<double> &numbers) {
    check(tcc_session_set_numbers(get(), key.c_str(), numbers.data(),
                                  numbers.size()));
  }
  /// A template, since pointers and numbers convert to bool.
  template <typename T, std::enable_if_t<std::is_same_v<T, bool>, int> = 0>
  void set(const std::string &key, T value) {
    set(key, std::string(value ? "true" : "false"));
  }
  /// Two numbers in braces could be a text as well.
  void set(const std::string &key, std::initializer_list<double> numbers) {
    set(key, std::vector<double>(numbers));
  }

  void save(const std::string &root) const {
    check(tcc_session_save(get(), root.c_str()));
  }
  /// See tcc_session_save_async.
  void saveAsync(const std::string &root, int64_t keepLast = 0,
                 int64_t keepEvery = 0) {
    tcc_retention retention = {sizeof(retention), keepLast, keepEvery};
    check(tcc_session_save_async(get(), root.c_str(), &retention));
  }
  /// The path of what saveAsync wrote last; empty if nothing since the last
  /// call.
  std::string wait() {
    const char *path = "";
    check(tcc_session_wait(get(), &path));
    return path;
  }
  /// The path of the newest checkpoint that is whole; empty if there is none.
  std::string restoreLatest(const std::string &root) {
    tcc_restored restored = {};
    check(tcc_session_restore_latest(get(), root.c_str(), &restored));
    return restored.path;
  }
  void restore(const std::string &path) {
    check(tcc_session_restore(get(), path.c_str()));
  }
  void loadParameters(const std::string &file) {
    check(tcc_session_load_parameters(get(), file.c_str()));
  }
  void exportParameters(const std::string &file) const {
    check(tcc_session_export_parameters(get(), file.c_str()));
  }
  uint64_t plannedBytes() const { return tcc_session_planned_bytes(get()); }

  tcc_session *get() const { return handle.get(); }

private:
  size_t findInput(const std::string &name) const {
    for (size_t i = 0; i < shapes.size(); ++i)
      if (name == tcc_session_input(get(), i)->name)
        return i;
    throw Error(TCC_USAGE, ("there is no input '" + name + "'").c_str());
  }
  size_t findVariable(const std::string &name, tcc_dtype dtype) const {
    ptrdiff_t index = tcc_session_find_variable(get(), name.c_str());
    if (index < 0)
      throw Error(TCC_USAGE, ("there is no variable '" + name + "'").c_str());
    if (variable(static_cast<size_t>(index)).dtype != dtype)
      throw Error(TCC_USAGE, ("'" + name + "' has another type").c_str());
    return static_cast<size_t>(index);
  }

  struct Release {
    void operator()(tcc_session *session) const {
      tcc_session_release(session);
    }
  };
  std::unique_ptr<tcc_session, Release> handle;
  std::unique_ptr<Callback> callback;
  std::vector<std::vector<int64_t>> shapes; ///< of the batch
  std::vector<tcc_tensor> batch;
  size_t inputCount = 0; ///< of the model
};

} // namespace tcc

#endif // TCC_RUNTIME_HPP
