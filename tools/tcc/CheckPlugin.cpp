//===- CheckPlugin.cpp - tcc --check-plugin -------------------------------===//
//
// An example is compiled by the ordinary pipeline: with its kernels, and by its
// body alone in f64. The first must give the same bits whatever the number of
// threads, and what the second gives but for rounding. Kernels for GPUs run on
// the emulated one, which looks at each access; PTX and cubins are checked, not
// run. Gradients are compared
// with difference quotients of fourth order along random directions, in f64 if
// there is a body. What a caller binds lies before pages that nobody may touch.
//
//===----------------------------------------------------------------------===//
#include "tools/tcc/CheckPlugin.h"

#include "tcc/compiler.h"
#include "tcc/op_examples.h"
#include "tcc/runtime.hpp"

#include <cmath>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <random>
#include <set>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace tcc;

namespace {

/// The step of difference quotients of fourth order.
constexpr double kStep = 1e-3;
/// How far they may be off, as a part of the sum of the terms' magnitudes.
constexpr double kWideTolerance = 1e-6, kTolerance = 2e-2;

/// Whether this process runs a program now, in memory that its parent reads.
volatile bool *isRunning = nullptr;

struct Failure {
  std::string message;
  int code = 1;
};

// --- Memory ------------------------------------------------------------------

/// Bytes whose last is the last of a page, before one that cannot be accessed.
class Guarded {
public:
  explicit Guarded(size_t size) : size(size) {
    size_t page = size_t(sysconf(_SC_PAGESIZE));
    length = (size + page - 1) / page * page + page;
    start = static_cast<char *>(mmap(nullptr, length, PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (start == MAP_FAILED)
      throw Failure{"there is no memory for it"};
    mprotect(start + length - page, page, PROT_NONE);
    bytes = start + length - page - size;
    std::memset(bytes, 0xff, size); // NaN
  }
  ~Guarded() { munmap(start, length); }
  Guarded(const Guarded &) = delete;

  char *data() { return bytes; }
  const size_t size;

private:
  char *start, *bytes;
  size_t length;
};

// --- Numbers -----------------------------------------------------------------

float fromBf16(uint16_t half) {
  uint32_t bits = uint32_t(half) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

/// An element as f64.
double load(const void *data, size_t i, tcc_dtype type) {
  auto at = [&](auto sample) {
    std::memcpy(&sample, static_cast<const char *>(data) + i * sizeof(sample),
                sizeof(sample));
    return sample;
  };
  switch (type) {
  case TCC_F64:
    return at(double());
  case TCC_F32:
    return double(at(float()));
  case TCC_F16:
    return double(at(_Float16()));
  case TCC_BF16:
    return double(fromBf16(at(uint16_t())));
  case TCC_I64:
    return double(at(int64_t()));
  case TCC_I32:
    return at(int32_t());
  case TCC_I16:
    return at(int16_t());
  case TCC_I8:
    return at(int8_t());
  case TCC_U64:
    return double(at(uint64_t()));
  case TCC_U32:
    return at(uint32_t());
  case TCC_U16:
    return at(uint16_t());
  default:
    return at(uint8_t());
  }
}

/// Rounds to nearest, which few inputs are far from.
void store(void *data, size_t i, tcc_dtype type, double value) {
  auto put = [&](auto number) {
    std::memcpy(static_cast<char *>(data) + i * sizeof(number), &number,
                sizeof(number));
  };
  auto integer = int64_t(value);
  switch (tcc_dtype_size(type)) {
  case 8:
    return type == TCC_F64 ? put(value) : put(integer);
  case 4:
    return type == TCC_F32 ? put(float(value)) : put(int32_t(integer));
  case 2: {
    if (type == TCC_F16)
      return put(_Float16(value));
    auto narrow = float(value);
    uint32_t bits;
    std::memcpy(&bits, &narrow, sizeof(bits));
    return put(type == TCC_BF16 ? uint16_t(bits >> 16) : uint16_t(integer));
  }
  default:
    return put(int8_t(integer));
  }
}

bool isFloat(tcc_dtype type) {
  return type == TCC_F64 || type == TCC_F32 || type == TCC_F16 ||
         type == TCC_BF16;
}

/// What rounding to the type is relative to a number.
double getEpsilon(tcc_dtype type) {
  return type == TCC_F64    ? 1e-12
         : type == TCC_F32  ? 1e-4
         : type == TCC_F16  ? 1e-2
         : type == TCC_BF16 ? 8e-2
                            : 0;
}

using Values = std::vector<double>;

// --- Programs ----------------------------------------------------------------

/// The package of a model of one call.
std::string compileCall(const std::string &folder, const std::string &model,
                        const CompileOptions &given) {
  CompileOptions options = given;
  options.model = folder + "/m.onnx";
  options.output = folder + "/m.tcc";
  std::ofstream(options.model, std::ios::binary) << model;
  CompileReport report = compile(options);
  if (report.exitCode != 0) {
    std::string message = "is not compiled";
    for (const std::string &problem : report.problems) {
      bool isOfCall = problem.starts_with(options.model + ": ");
      message += ": " + problem.substr(isOfCall ? options.model.size() + 2 : 0);
    }
    throw Failure{message, report.exitCode};
  }
  return options.output;
}

/// A model of one call, compiled, whose inputs and outputs lie in memory of
/// ours.
class Call {
public:
  Call(const std::string &folder, const std::string &model,
       const CompileOptions &options) {
    package = Package::open(compileCall(folder, model, options));
    ProgramOptions loading;
    if (options.emulation != Emulation::None)
      loading.device = "emulated";
    program.emplace(*package, loading);
    for (size_t i = 0; i < program->outputCount(); ++i)
      allocate(program->output(i), outputs);
  }

  /// The results of input values; `threads` of them.
  std::vector<Values> run(const std::vector<Values> &inputs, int threads) {
    ContextOptions options;
    options.threads = threads;
    Context context(*program, options);
    std::vector<std::unique_ptr<Guarded>> given;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const tcc_tensor_spec &spec = program->input(i);
      allocate(spec, given);
      for (size_t j = 0; j < inputs[i].size(); ++j)
        store(given[i]->data(), j, spec.dtype, inputs[i][j]);
      context.bindBytes(i, given[i]->data(), spec.dtype, getShape(spec));
    }
    std::vector<Values> results;
    for (size_t i = 0; i < outputs.size(); ++i)
      context.bindOutputBytes(i, outputs[i]->data(), outputs[i]->size);
    *isRunning = true;
    context.run();
    *isRunning = false;
    for (size_t i = 0; i < outputs.size(); ++i) {
      Tensor tensor = context.output(i);
      Values &values = results.emplace_back(tensor.size());
      for (size_t j = 0; j < values.size(); ++j)
        values[j] = load(tensor.bytes(), j, tensor.dtype());
    }
    return results;
  }

  const Program &getProgram() const { return *program; }

private:
  static std::vector<int64_t> getShape(const tcc_tensor_spec &spec) {
    std::vector<int64_t> shape;
    for (size_t axis = 0; axis < spec.rank; ++axis)
      shape.push_back(spec.dims[axis].max);
    return shape;
  }
  static void allocate(const tcc_tensor_spec &spec,
                       std::vector<std::unique_ptr<Guarded>> &into) {
    size_t count = tcc_dtype_size(spec.dtype);
    for (int64_t extent : getShape(spec))
      count *= size_t(extent);
    into.push_back(std::make_unique<Guarded>(count));
  }

  std::optional<Package> package;
  std::optional<Program> program;
  std::vector<std::unique_ptr<Guarded>> outputs;
};

// --- Checks ------------------------------------------------------------------

/// Checks one example.
class Checker {
public:
  Checker(const std::string &plugin, const OpExample &example,
          const std::string &folder, const CompileOptions &given)
      : example(example), folder(folder) {
    options.target = given.target;
    options.emulation = given.emulation;
    options.archs = given.archs;
    options.import.plugins = {plugin};
    options.recordsDecisions = false;
    options.jobs = 1;
    for (const ExampleInput &input : example.inputs)
      addInput(input);
  }

  void run();

private:
  void addInput(const ExampleInput &input);
  void checkResults();
  void checkFinished();
  bool isFinished() const {
    return options.emulation != Emulation::None && !example.archs.empty();
  }
  void checkGradient(bool isWide);
  /// What has no kernels is computed by the host.
  CompileOptions getOptions(bool usesKernels) const {
    CompileOptions changed = options;
    if (!usesKernels) {
      changed.target = "cpu";
      changed.emulation = Emulation::None;
      changed.archs.clear();
    }
    changed.import.usesPluginKernels = usesKernels;
    return changed;
  }

  const OpExample &example;
  const std::string &folder;
  CompileOptions options;
  std::mt19937 random{7};
  std::vector<Values> inputs;
};

} // namespace

/// Floats are about 1, integers few and not negative: they may be indices.
void Checker::addInput(const ExampleInput &input) {
  size_t count = 1;
  for (int64_t extent : input.shape)
    count *= size_t(extent);
  Values &values = inputs.emplace_back(count);
  std::uniform_real_distribution<double> reals(-1, 1);
  std::uniform_int_distribution<int> integers(0, input.type == "bool" ? 1 : 3);
  for (double &value : values)
    // Numbers of few bits, so that all types have them.
    value = input.isFloat() ? std::round(reals(random) * 128) / 128
                            : integers(random);
}

void Checker::checkResults() {
  Call call(folder, example.model, getOptions(true));
  std::vector<Values> results = call.run(inputs, 1);
  for (int threads : {1, 2, 3}) {
    std::vector<Values> again = call.run(inputs, threads);
    for (size_t i = 0; i < results.size(); ++i)
      if (!results[i].empty() &&
          std::memcmp(results[i].data(), again[i].data(),
                      results[i].size() * sizeof(double)) != 0)
        throw Failure{threads == 1 ? "results change from run to run"
                                   : "results change with the tasks that a "
                                     "thread is given"};
  }
  if (!example.hasBody)
    return;
  std::vector<Values> expected =
      Call(folder, example.wideModel, getOptions(false)).run(inputs, 1);
  for (size_t i = 0; i < results.size(); ++i) {
    double most = 1;
    for (double value : expected[i])
      if (std::isfinite(value))
        most = std::max(most, std::abs(value));
    double tolerance = getEpsilon(call.getProgram().output(i).dtype) * most;
    if (expected[i].size() != results[i].size())
      throw Failure{"y" + std::to_string(i) +
                    " has another size than its body gives"};
    for (size_t j = 0; j < results[i].size(); ++j) {
      double found = results[i][j], wanted = expected[i][j];
      bool areNan = std::isnan(found) && std::isnan(wanted);
      if (found != wanted && !areNan &&
          !(std::abs(found - wanted) <= tolerance))
        throw Failure{"element " + std::to_string(j) + " of result " +
                      std::to_string(i) + " is " + std::to_string(found) +
                      ", its body gives " + std::to_string(wanted)};
    }
  }
}

/// Compares each argument's gradient with difference quotients along a
/// direction.
void Checker::checkGradient(bool isWide) {
  CompileOptions changed = getOptions(!isWide);
  std::vector<size_t> wanted;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (example.inputs[i].isFloat() && !inputs[i].empty()) {
      wanted.push_back(i);
      changed.gradientWrt.push_back(example.inputs[i].name);
    }
  if (wanted.empty())
    return;
  const std::string &model = isWide ? example.wideModel : example.model;
  double step = isWide ? kStep : 32 * kStep;
  for (size_t result = 0; result < example.resultCount; ++result) {
    changed.gradientOf = "y" + std::to_string(result);
    Call call(folder, model, changed);
    if (!isFloat(call.getProgram().output(result).dtype))
      continue;
    auto sum = [&](const std::vector<Values> &at) {
      double total = 0;
      std::vector<Values> results = call.run(at, 1);
      for (double value : results[result])
        total += value;
      return total;
    };
    std::vector<Values> all = call.run(inputs, 1);
    for (size_t i = 0; i < wanted.size(); ++i) {
      const Values &gradient = all[example.resultCount + i];
      std::uniform_real_distribution<double> reals(-1, 1);
      Values direction(gradient.size());
      double product = 0, magnitude = 1e-2;
      for (size_t j = 0; j < direction.size(); ++j) {
        direction[j] = reals(random);
        product += gradient[j] * direction[j];
        magnitude += std::abs(gradient[j] * direction[j]);
      }
      double quotient = 0;
      for (auto [factor, weight] :
           {std::pair(1, 8), {-1, -8}, {2, -1}, {-2, 1}}) {
        std::vector<Values> moved = inputs;
        for (size_t j = 0; j < direction.size(); ++j)
          moved[wanted[i]][j] += factor * step * direction[j];
        quotient += weight * sum(moved) / (12 * step);
      }
      double bound = (isWide ? kWideTolerance : kTolerance) * magnitude;
      if (!(std::abs(product - quotient) <= bound))
        throw Failure{"gradient of '" + example.inputs[wanted[i]].name +
                      "' is off: along a direction it is " +
                      std::to_string(product) + ", differences give " +
                      std::to_string(quotient)};
    }
  }
}

/// No device that runs PTX or cubins is needed to make a package of them.
void Checker::checkFinished() {
  CompileOptions changed = options;
  changed.emulation = Emulation::None;
  changed.archs = example.archs;
  compileCall(folder, example.model, changed);
}

void Checker::run() {
  if (isFinished())
    checkFinished();
  else
    checkResults();
  if (!example.hasGradient)
    return;
  if (example.hasBody)
    checkGradient(true);
  if (!isFinished() && (example.hasKernels || !example.hasBody))
    checkGradient(false);
}

// --- All of them -------------------------------------------------------------

/// What a check says goes to the pipe; the exit code.
static int runChild(const std::string &path, const OpExample &example,
                    const std::string &folder, const CompileOptions &given,
                    int pipe) {
  // Also where a sanitizer would report them and exit.
  for (int number : {SIGSEGV, SIGBUS, SIGILL, SIGFPE})
    std::signal(number, SIG_DFL);
  try {
    Checker(path, example, folder, given).run();
    return 0;
  } catch (const Failure &failure) {
    dprintf(pipe, "%s", failure.message.c_str());
    return failure.code;
  } catch (const std::exception &error) {
    dprintf(pipe, "does not run: %s", error.what());
    return 1;
  }
}

/// What is wrong with an example, and the exit code.
static Failure runExample(const std::string &path, const OpExample &example,
                          const std::string &folder,
                          const CompileOptions &given) {
  int ends[2];
  if (pipe(ends) != 0)
    return {"there is no pipe for it", 70};
  std::cout.flush();
  std::cerr.flush();
  pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    _exit(runChild(path, example, folder, given, ends[1]));
  }
  close(ends[1]);
  Failure failure{"", 0};
  char buffer[4096];
  for (ssize_t count; (count = read(ends[0], buffer, sizeof(buffer))) > 0;)
    failure.message.append(buffer, size_t(count));
  close(ends[0]);
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child)
    return {"cannot be run", 70};
  if (WIFSIGNALED(status)) {
    int signal = WTERMSIG(status);
    bool isMemory = signal == SIGSEGV || signal == SIGBUS;
    if (!*isRunning)
      return {std::string("stops the compiler: ") + strsignal(signal), 70};
    return {isMemory ? "touches memory outside of its buffers"
                     : std::string("ends with a signal: ") + strsignal(signal),
            1};
  }
  failure.code = WEXITSTATUS(status);
  return failure;
}

int tools::checkPlugin(const std::string &path, CompileOptions given,
                       bool isQuiet) {
  // The emulated device is the one that finds what is wrong; no other runs.
  if (given.target == "cuda") {
    given.emulation = Emulation::Race;
    if (given.archs.empty())
      given.archs = {"none"};
  }
  OpExamples found = readExamples(path);
  for (const std::string &problem : found.problems)
    std::cerr << "tcc: " << problem << '\n';
  if (!found.problems.empty())
    return found.exitCode;
  std::string folder =
      (std::filesystem::temp_directory_path() / "tcc-plugin-XXXXXX").string();
  if (!mkdtemp(folder.data())) {
    std::cerr << "tcc: no folder can be made in the temporary one\n";
    return 5;
  }
  void *shared = mmap(nullptr, sizeof(bool), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) {
    std::cerr << "tcc: there is no memory to be had\n";
    return 5;
  }
  isRunning = static_cast<bool *>(shared);
  int code = 0;
  for (const OpExample &example : found.examples) {
    *isRunning = false;
    Failure failure = runExample(path, example, folder, given);
    if (failure.code == 0)
      continue;
    std::cerr << "tcc: " << path << ": " << example.name << " (" << example.text
              << "): " << failure.message << '\n';
    code = code == 0 ? failure.code : std::min(code, failure.code);
  }
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  if (isQuiet)
    return code;
  std::set<std::string> notRun;
  for (const OpExample &example : found.examples)
    if (given.emulation != Emulation::None && !example.archs.empty())
      notRun.insert(example.name);
  for (const std::string &name : notRun)
    std::cerr << "tcc: note: " << name
              << " has PTX or cubins, which run on GPUs alone: not run\n";
  for (const std::string &name : found.without)
    std::cerr << "tcc: note: " << name << " has no examples: it was not run\n";
  if (code == 0)
    std::cout << found.examples.size() << " examples agree\n";
  return code;
}
