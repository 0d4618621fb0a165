// Measures the ways in which a GPU's libraries do the works of a package, the
// plans of kernels with candidates on a CPU, and which of several packages, for
// batches of other sizes, trains fastest. The
// data are random, and so is what comes of them: nothing of a run is kept.

#include "runtime/executor/Variants.h"
#include "tools/tcc-run/Inputs.h"
#include "tools/tcc-run/Json.h"
#include "tools/tcc-run/Session.h"
#include "tools/tcc-run/TrainSession.h"
#include "tools/tcc-run/UpdateTimes.h"

#include <algorithm>
#include <filesystem>
#include <iomanip>

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;
using format::EntryKind;

namespace {

/// What was measured of one work.
struct TunedWork {
  std::string name;
  double kernel = 0;           ///< microseconds of the package's own
  std::optional<double> first; ///< of what the library names first
  Tuning fastest;

  /// Microseconds of the way that is taken where nothing was measured.
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

using UseBatch = std::function<Status(std::span<const TensorView>)>;

/// Calls `use` with inputs for an entry. What was measured again and again may
/// well overflow.
static Status runVariant(const format::Entry &entry, const UseBatch &use) {
  auto batch = RandomBatch::make(entry);
  if (!batch.ok())
    return batch.takeStatus();
  Status status = use(batch->views());
  return status.code() == Code::Numerics ? Status() : std::move(status);
}

/// The same for all variants of a kind that the package has.
static Status runEntry(const TrainingSession &session, EntryKind kind,
                       const UseBatch &use) {
  Status status;
  for (const format::Entry *entry :
       listVariants(session.executable().program(), kind))
    if (status.ok())
      status = runVariant(*entry, use);
  return status;
}

/// Updates from several batches, until each variant was one of them.
static Status runUpdates(TrainingSession &session) {
  auto variants =
      listVariants(session.executable().program(), EntryKind::accumulate_step);
  auto batches = size_t(std::max<int64_t>(session.exactBatches(), 1));
  Status status;
  for (size_t done = 0; status.ok() && done < variants.size();) {
    for (size_t i = 0; status.ok() && i < batches; ++i, ++done)
      status = runVariant(*variants[done % variants.size()], [&](auto batch) {
        session.clearFault();
        return session.accumulate(batch);
      });
    if (status.ok())
      status = session.apply();
    if (status.code() == Code::Numerics)
      status = Status();
  }
  return status;
}

static Status runSteps(TrainingSession &session) {
  using Views = std::span<const TensorView>;
  Status status = runEntry(session, EntryKind::train_step,
                           [&](Views batch) { return session.step(batch); });
  if (status.ok())
    status = runUpdates(session);
  Evaluation sum;
  if (status.ok())
    status = runEntry(session, EntryKind::eval, [&](Views batch) {
      return session.evaluate(batch, sum);
    });
  if (status.ok())
    status = runEntry(session, EntryKind::predict,
                      [&](Views inputs) { return session.predict(inputs); });
  return status;
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

/// A work's kernel is measured first, and a work that several packages have in
/// each of them.
static std::vector<TunedWork>
summarise(const std::vector<Measurement> &measured) {
  std::vector<TunedWork> works;
  for (const auto &[name, tuning] : measured) {
    auto known =
        std::find_if(works.begin(), works.end(),
                     [&](const auto &work) { return work.name == name; });
    if (known == works.end())
      known = works.insert(known,
                           {name, tuning.microseconds, std::nullopt, tuning});
    TunedWork &work = *known;
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
    if (!work.fastest.plan.empty())
      std::cout << work.fastest.plan;
    else if (work.fastest.way == Tuning::kKernel)
      std::cout << "kernel";
    else
      std::cout << "way " << work.fastest.way;
    std::cout << "  " << work.name << '\n';
  }
}

static std::vector<UpdateTime>::const_iterator
findFastest(const std::vector<UpdateTime> &times) {
  return std::min_element(times.begin(), times.end(),
                          [](const UpdateTime &a, const UpdateTime &b) {
                            return a.perSample() < b.perSample();
                          });
}

static void printTimes(const std::vector<UpdateTime> &times) {
  auto fastest = findFastest(times);
  std::cout << std::fixed << std::setprecision(3);
  for (auto time = times.begin(); time != times.end(); ++time)
    std::cout << time->package << ": " << time->seconds * 1e3
              << " ms for an update of " << time->samples << " samples, "
              << time->perSample() * 1e6 << " us a sample"
              << (time == fastest ? ", the fastest" : "") << '\n';
}

static void printSummary(const std::vector<TunedWork> &works,
                         const std::string &path) {
  double before = 0, after = 0;
  for (const TunedWork &work : works)
    before += work.untuned(), after += work.fastest.microseconds;
  std::cout << works.size() << " works: " << std::fixed << std::setprecision(1)
            << before << " us -> " << after << " us; " << path << '\n';
}

static nlohmann::ordered_json describe(const std::vector<UpdateTime> &times) {
  auto rows = nlohmann::ordered_json::array();
  for (const UpdateTime &time : times)
    rows.push_back({{"package", time.package},
                    {"samples", time.samples},
                    {"update_ms", time.seconds * 1e3},
                    {"sample_us", time.perSample() * 1e6}});
  return rows;
}

static nlohmann::ordered_json describe(const std::vector<TunedWork> &works,
                                       const std::string &path) {
  nlohmann::ordered_json document = {{"schema_version", 1},
                                     {"tune_cache", path},
                                     {"works", nlohmann::json::array()}};
  for (const TunedWork &work : works) {
    nlohmann::ordered_json row = {
        {"work", work.name},   {"kernel_us", work.kernel},
        {"first_us", nullptr}, {"fastest_us", work.fastest.microseconds},
        {"way", nullptr},      {"plan", nullptr}};
    if (work.first)
      row["first_us"] = *work.first;
    if (work.fastest.way != Tuning::kKernel)
      row["way"] = work.fastest.way;
    if (!work.fastest.plan.empty())
      row["plan"] = work.fastest.plan;
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

/// A variant that has nothing to measure is an error if all are such.
static Status
measureVariants(const std::shared_ptr<const Executable> &executable,
                const RunningOptions &running, const InputOptions &inputs,
                std::vector<Measurement> &measured) {
  InputOptions own = inputs;
  Status nothing;
  bool isAny = false;
  for (const format::Entry *variant :
       listVariants(executable->program(), EntryKind::main)) {
    own.variant = inputs.variant.value_or(variant->variant());
    auto session = openSession(executable, running.threads, own);
    if (!session.ok())
      return session.takeStatus();
    Status status = measure(session->context->walker().getStream(), measured,
                            [&] { return session->context->run(); });
    if (status.code() == Code::Unsupported)
      nothing = std::move(status);
    else if (!status.ok())
      return status;
    else
      isAny = true;
    if (inputs.variant)
      break;
  }
  return isAny ? Status() : std::move(nothing);
}

static Status measurePackage(const RunningOptions &running,
                             const InputOptions &inputs,
                             std::vector<Measurement> &measured) {
  auto executable = loadExecutable(running);
  if (!executable.ok())
    return executable.takeStatus();
  if ((*executable)->findEntry(EntryKind::accumulate_step)) {
    auto session = TrainingSession::create(std::move(*executable),
                                           {.threads = running.threads});
    if (!session.ok())
      return session.takeStatus();
    return measure((*session)->stream(), measured,
                   [&] { return runSteps(**session); });
  }
  return measureVariants(*executable, running, inputs, measured);
}

/// Measures the ways of each package. A device with one way is no error where
/// batch sizes are to be compared.
static Status measureWays(const TuneOptions &options,
                          std::vector<Measurement> &measured) {
  RunningOptions running = options.running;
  running.tuneCache.clear();
  InputOptions inputs = options.inputs;
  if (inputs.randomSeed.empty())
    inputs.randomSeed = "0";
  for (const std::string &package : options.getPackages()) {
    running.package = package;
    Status status = measurePackage(running, inputs, measured);
    if (!status.ok() &&
        (options.others.empty() || status.code() != Code::Unsupported))
      return status;
  }
  return Status();
}

static Status tune(const TuneOptions &options) {
  RunningOptions running = options.running;
  if (running.tuneCache.empty())
    running.tuneCache =
        std::filesystem::path(running.package).stem().string() + ".tune";
  std::vector<Measurement> measured;
  if (Status status = measureWays(options, measured); !status.ok())
    return status;
  std::vector<TunedWork> works = summarise(measured);
  bool hasWays = options.others.empty() || !works.empty();
  if (!hasWays)
    running.tuneCache.clear();
  else if (Status status = save(works, running.tuneCache); !status.ok())
    return status;
  std::vector<UpdateTime> times;
  if (!options.others.empty()) {
    auto timed = timeUpdates(running, options.getPackages(), options.data);
    if (!timed.ok())
      return timed.takeStatus();
    times = std::move(*timed);
  }
  if (running.json) {
    auto document = describe(works, running.tuneCache);
    if (!times.empty()) {
      document["packages"] = describe(times);
      document["fastest"] = findFastest(times)->package;
    }
    printJson(document);
    return Status();
  }
  if (running.verbose)
    printWorks(works);
  if (!running.quiet && hasWays)
    printSummary(works, running.tuneCache);
  if (!running.quiet)
    printTimes(times);
  return Status();
}

int tools::tuneCommand(const TuneOptions &options) {
  return report(tune(options));
}
