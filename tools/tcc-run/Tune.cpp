// Measures the ways in which a GPU's libraries do the works of a package. The
// data are random, and so is what comes of them: nothing of a run is kept.

#include "tools/tcc-run/Inputs.h"
#include "tools/tcc-run/Json.h"
#include "tools/tcc-run/Session.h"
#include "tools/tcc-run/TrainSession.h"

#include <algorithm>
#include <filesystem>
#include <iomanip>

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;

namespace {

/// What was measured of one work.
struct TunedWork {
  std::string name;
  double kernel = 0;           ///< microseconds of the package's own
  std::optional<double> first; ///< of what the library names first
  Tuning fastest;

  /// Of the way that is taken where nothing was measured.
  double untuned() const { return first.value_or(kernel); }
};

} // namespace

/// Runs `body` while the stream measures.
static Status measure(Stream &stream, std::vector<Measurement> &measured,
                      const std::function<Status()> &body) {
  if (Status status = stream.tune(&measured); !status.ok())
    return status;
  Status status = body();
  Status ended = stream.tune(nullptr);
  return status.ok() ? std::move(ended) : std::move(status);
}

//===----------------------------------------------------------------------===//
// Training packages
//===----------------------------------------------------------------------===//

/// Tensors for the inputs of an entry, whose shapes must be static.
static Result<std::vector<Tensor>> makeInputs(const format::Entry &entry) {
  std::vector<Tensor> tensors;
  for (const format::TensorSpec *input : *entry.inputs()) {
    auto shape = staticShape(*input);
    if (!shape.ok())
      return shape.takeStatus();
    auto tensor = Tensor::allocate(input->dtype(), std::move(*shape));
    if (!tensor.ok())
      return tensor.takeStatus();
    fillRandom(*tensor, /*seed=*/0, tensors.size(), *input);
    tensors.push_back(std::move(*tensor));
  }
  return tensors;
}

/// Calls `use` with inputs for the entry, if the package has it. What was
/// measured again and again may well overflow.
static Status
runEntry(const TrainingSession &session, std::string_view name,
         const std::function<Status(std::span<const TensorView>)> &use) {
  const format::Entry *entry = session.findEntry(name);
  if (!entry)
    return Status();
  auto tensors = makeInputs(*entry);
  if (!tensors.ok())
    return tensors.takeStatus();
  std::vector<TensorView> views;
  for (const Tensor &tensor : *tensors)
    views.push_back({tensor.data.data(), tensor.dtype, tensor.shape});
  Status status = use(views);
  return status.code() == Code::Numerics ? Status() : std::move(status);
}

static Status runSteps(TrainingSession &session) {
  using Views = std::span<const TensorView>;
  Status status = runEntry(session, "train_step",
                           [&](Views batch) { return session.step(batch); });
  if (status.ok())
    status = runEntry(session, "accumulate_step", [&](Views batch) {
      session.clearFault();
      return session.accumulate(batch);
    });
  if (status.ok())
    status = runEntry(session, "apply", [&](Views) { return session.apply(); });
  Evaluation sum;
  if (status.ok())
    status = runEntry(session, "eval", [&](Views batch) {
      return session.evaluate(batch, sum);
    });
  if (status.ok())
    status = runEntry(session, "predict",
                      [&](Views inputs) { return session.predict(inputs); });
  return status;
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

/// Measurements of one work stand together, its kernel first.
static std::vector<TunedWork>
summarise(const std::vector<Measurement> &measured) {
  std::vector<TunedWork> works;
  for (const auto &[name, tuning] : measured) {
    if (works.empty() || works.back().name != name)
      works.push_back({name, tuning.microseconds, std::nullopt, tuning});
    TunedWork &work = works.back();
    if (tuning.way != Tuning::kKernel && !work.first)
      work.first = tuning.microseconds;
    if (tuning.microseconds < work.fastest.microseconds)
      work.fastest = tuning;
  }
  return works;
}

static void printWorks(const std::vector<TunedWork> &works) {
  std::cout << std::fixed << std::setprecision(2);
  for (const TunedWork &work : works) {
    std::cout << std::setw(10) << work.untuned() << " us -> " << std::setw(10)
              << work.fastest.microseconds << " us  ";
    if (work.fastest.way == Tuning::kKernel)
      std::cout << "kernel";
    else
      std::cout << "way " << work.fastest.way;
    std::cout << "  " << work.name << '\n';
  }
}

static nlohmann::ordered_json describe(const std::vector<TunedWork> &works,
                                       const std::string &path) {
  nlohmann::ordered_json document = {{"schema_version", 1},
                                     {"tune_cache", path},
                                     {"works", nlohmann::json::array()}};
  for (const TunedWork &work : works) {
    nlohmann::ordered_json row = {{"work", work.name},
                                  {"kernel_us", work.kernel},
                                  {"first_us", nullptr},
                                  {"fastest_us", work.fastest.microseconds},
                                  {"way", nullptr}};
    if (work.first)
      row["first_us"] = *work.first;
    if (work.fastest.way != Tuning::kKernel)
      row["way"] = work.fastest.way;
    document["works"].push_back(std::move(row));
  }
  return document;
}

/// Joins what was measured with what the file has.
static Status save(const std::vector<TunedWork> &works,
                   const std::string &path) {
  Tunings tunings;
  if (std::error_code ignored; std::filesystem::exists(path, ignored)) {
    auto known = Tunings::read(path);
    if (!known.ok())
      return known.takeStatus();
    tunings = std::move(*known);
  }
  for (const TunedWork &work : works)
    tunings.set(work.name, work.fastest);
  return tunings.write(path);
}

static Status measurePackage(const RunningOptions &running,
                             const InputOptions &inputs,
                             std::vector<Measurement> &measured) {
  auto executable = loadExecutable(running);
  if (!executable.ok())
    return executable.takeStatus();
  if ((*executable)->findEntry("train_step")) {
    auto session = TrainingSession::create(std::move(*executable),
                                           {.threads = running.threads});
    if (!session.ok())
      return session.takeStatus();
    return measure((*session)->stream(), measured,
                   [&] { return runSteps(**session); });
  }
  auto session = openSession(std::move(*executable), running.threads, inputs);
  if (!session.ok())
    return session.takeStatus();
  return measure(session->context->walker().getStream(), measured,
                 [&] { return session->context->run(); });
}

static Status tune(const TuneOptions &options) {
  RunningOptions running = options.running;
  std::string path = std::move(running.tuneCache);
  running.tuneCache.clear();
  if (path.empty())
    path = std::filesystem::path(running.package).stem().string() + ".tune";
  InputOptions inputs = options.inputs;
  if (inputs.randomSeed.empty())
    inputs.randomSeed = "0";
  std::vector<Measurement> measured;
  if (Status status = measurePackage(running, inputs, measured); !status.ok())
    return status;
  std::vector<TunedWork> works = summarise(measured);
  if (Status status = save(works, path); !status.ok())
    return status;
  if (running.json) {
    printJson(describe(works, path));
    return Status();
  }
  if (running.verbose)
    printWorks(works);
  double before = 0, after = 0;
  for (const TunedWork &work : works)
    before += work.untuned(), after += work.fastest.microseconds;
  if (!running.quiet)
    std::cout << works.size() << " works of libraries: " << std::fixed
              << std::setprecision(1) << before << " us -> " << after << " us; "
              << path << '\n';
  return Status();
}

int tools::tuneCommand(const TuneOptions &options) {
  return report(tune(options));
}
