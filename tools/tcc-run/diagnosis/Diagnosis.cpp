#include "tools/tcc-run/diagnosis/Diagnosis.h"

#include "runtime/base/Status.h"

#include <algorithm>
#include <cstdio>

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;

/// Less of the time is not worth a change.
static constexpr double kWorth = 0.1;

static std::string percent(double share) {
  return concat(static_cast<int64_t>(100 * share + 0.5), " %");
}

namespace {

/// The tree: what costs time beside computing first, most of it first; then
/// what makes computing slow.
class Tree {
public:
  explicit Tree(const RunFigures &figures) : run(figures) {}

  Diagnosis ask();

private:
  double shareOf(double seconds) const { return seconds / run.all; }
  /// The run's time now / without so many seconds of it.
  double gainOf(double seconds) const {
    return run.all / std::max(run.all - seconds, 1e-9 * run.all);
  }
  bool is(std::string asked, double value, double limit);
  void consider(Bottleneck candidate);
  void askWaits();
  Bottleneck explainData();
  Bottleneck explainDelay() const;
  Bottleneck explainCheckpoints() const;
  Bottleneck explainCompute();
  double gainOfThreads() const;

  const RunFigures &run;
  Diagnosis diagnosis;
};

} // namespace

bool Tree::is(std::string asked, double value, double limit) {
  diagnosis.questions.push_back({std::move(asked), value, limit});
  return diagnosis.questions.back().isYes();
}

void Tree::consider(Bottleneck candidate) {
  if (candidate.share > diagnosis.bottleneck.share)
    diagnosis.bottleneck = std::move(candidate);
}

/// Who waits for a disk uses no CPU.
Bottleneck Tree::explainData() {
  constexpr double kDecodes = 0.5;
  double cpuShare = run.reading > 0 ? run.readingCpu / run.reading : 1;
  std::string waited =
      concat(percent(shareOf(run.data)), " of the time is waiting for batches");
  if (!is("reading samples, of which on a CPU", cpuShare, kDecodes))
    return {"storage", shareOf(run.data),
            concat(waited, ", and reading them is waiting for the disk"),
            "keep what is read on a faster disk, or a copy of it: "
            "--set 'data.cache=\"disk:FOLDER:SIZE\"'",
            gainOf(run.data)};
  std::string found =
      concat(waited, ", and making them keeps ", std::max(run.workers, 1),
             " thread", run.workers > 1 ? "s" : "", " busy");
  if (run.workers + 1 < run.cpus)
    return {"decode", shareOf(run.data), std::move(found),
            concat("let more threads read: --set data.workers=", run.cpus - 1),
            gainOf(run.data)};
  return {"decode", shareOf(run.data), std::move(found),
          "keep decoded images: --set 'data.cache=\"ram:SIZE\"', or do before "
          "training what transforms do in every epoch",
          gainOf(run.data)};
}

Bottleneck Tree::explainCheckpoints() const {
  return {"checkpoints", shareOf(run.checkpoints),
          concat(percent(shareOf(run.checkpoints)),
                 " of the time is waiting for checkpoints"),
          run.areCheckpointsSynced
              ? "write them while training goes on: no --sync-checkpoints"
              : "write fewer of them (--checkpoint-every), or to a faster disk",
          gainOf(run.checkpoints)};
}

Bottleneck Tree::explainDelay() const {
  std::string found =
      concat(percent(shareOf(run.delayed)),
             " of the time others had the CPU while this process wanted it");
  if (run.threads > run.cpus)
    return {"threads", shareOf(run.delayed), std::move(found),
            concat("compute with as many threads as there are CPUs: --threads ",
                   run.cpus),
            gainOf(run.delayed)};
  return {"other processes", shareOf(run.delayed), std::move(found),
          "end them, or run elsewhere; tcc-run doctor says how many there are",
          gainOf(run.delayed)};
}

void Tree::askWaits() {
  auto isWorth = [&](const char *what, double seconds) {
    return is(concat(what, ", of the time"), shareOf(seconds), kWorth);
  };
  if (isWorth("waiting for batches", run.data))
    consider(explainData());
  if (isWorth("waiting for checkpoints", run.checkpoints))
    consider(explainCheckpoints());
  if (isWorth("waiting for other ranks", run.communication))
    consider({"communication", shareOf(run.communication),
              concat(percent(shareOf(run.communication)),
                     " of the time is waiting for other ranks"),
              "exchange less often: batch.accumulate, or larger batches; tcc "
              "--check lists what hides each message",
              gainOf(run.communication)});
  if (isWorth("copies that nothing hides", run.copies))
    consider({"transfer", shareOf(run.copies),
              concat(percent(shareOf(run.copies)), " of the time is copies"),
              "copy less: [input.NAME] dtype = \"u8\" for images, or a larger "
              "memory budget",
              gainOf(run.copies)});
  if (isWorth("ready to run while others ran", run.delayed))
    consider(explainDelay());
  if (isWorth("not allowed to run", run.stopped))
    consider({"CPU quota", shareOf(run.stopped),
              concat(percent(shareOf(run.stopped)),
                     " of the time the process was not allowed to run"),
              "give its container more CPUs: tcc-run doctor says its quota",
              gainOf(run.stopped)});
  double skipped = double(run.skipped) / double(run.updates);
  if (is("skipped, of all updates", skipped, kWorth))
    consider({"skipped updates", skipped,
              concat(percent(skipped), " of the updates changed nothing"),
              "gradients overflow: a smaller --set precision.loss_scale, or "
              "\"dynamic\" in the recipe",
              1 / std::max(1 - skipped, kWorth)});
}

/// Amdahl's law. Threads share caches and memory: not all of them help whole.
double Tree::gainOfThreads() const {
  constexpr double kEfficiency = 0.8;
  double more = kEfficiency * run.cpus / run.threads,
         part = shareOf(run.compute);
  return 1 / (1 - part + part / std::max(more, 1.0));
}

/// Nothing else takes much of the time.
Bottleneck Tree::explainCompute() {
  constexpr double kFewMicroseconds = 5, kMuchHost = 0.15, kMostBound = 0.6;
  double part = shareOf(run.compute + run.otherLanes);
  double each = 1e6 * run.compute / double(std::max<int64_t>(run.launches, 1));
  if (run.threads > 0 &&
      is("CPUs that do not compute, of all", 1 - double(run.threads) / run.cpus,
         0) &&
      gainOfThreads() > 1 + kWorth)
    return {"threads", part,
            concat(run.threads, " of ", run.cpus, " CPUs compute"),
            concat("--threads ", run.cpus), gainOfThreads()};
  // What a launch costs beside its work: the host's walk, and cold caches.
  double idle = run.host + std::max(run.compute - 4 * run.ideal, 0.0);
  if (is("between launches, of the time", shareOf(run.host), kMuchHost) ||
      (run.launches > 0 && each < kFewMicroseconds))
    return {"launches", shareOf(idle),
            concat("a launch takes ", static_cast<int64_t>(each + 0.5),
                   " us on average, and ", percent(shareOf(run.host)),
                   " of the time is between them"),
            "larger batches: --dim batch=N of tcc, or fewer with batch.micro",
            gainOf(idle / 2)};
  double bound = run.compute > 0 ? run.memoryBound / run.compute : 0;
  if (is("kernels that the memory's bandwidth limits, of computing", bound,
         kMostBound))
    return {"memory bandwidth", shareOf(run.memoryBound),
            concat(percent(bound), " of computing is kernels that move more "
                                   "bytes than the memory can in the time"),
            "half of the bytes, unless the recipe has it: precision.compute = "
            "\"bf16\"",
            gainOf(run.memoryBound / 3)};
  return {"compute", part,
          concat(percent(part),
                 " of the time is computing, and nothing else "
                 "takes ",
                 percent(kWorth)),
          /*advice=*/"", 1};
}

Diagnosis Tree::ask() {
  askWaits();
  if (diagnosis.bottleneck.name.empty())
    diagnosis.bottleneck = explainCompute();
  return std::move(diagnosis);
}

Diagnosis tools::diagnose(const RunFigures &figures) {
  return Tree(figures).ask();
}

std::string tools::print(const Diagnosis &diagnosis) {
  std::string text;
  for (const Question &question : diagnosis.questions) {
    char line[160];
    std::snprintf(line, sizeof(line), "%8.1f %%  %-60s over %.0f %%? %s\n",
                  100 * question.value, question.asked.c_str(),
                  100 * question.limit, question.isYes() ? "yes" : "no");
    text += line;
  }
  const Bottleneck &found = diagnosis.bottleneck;
  text += concat("bottleneck: ", found.name, ": ", found.found, "\n");
  if (found.advice.empty())
    return text;
  text += concat("what helps: ", found.advice);
  if (found.gain > 1) {
    char gain[32];
    std::snprintf(gain, sizeof(gain), "%.1f", found.gain);
    text += concat(": up to ", gain, " times as fast");
  }
  return text + "\n";
}

nlohmann::ordered_json tools::describe(const Diagnosis &diagnosis) {
  const Bottleneck &found = diagnosis.bottleneck;
  nlohmann::ordered_json document = {
      {"bottleneck", found.name},
      {"share", found.share},
      {"found", found.found},
      {"advice", found.advice},
      {"gain", found.gain},
      {"questions", nlohmann::ordered_json::array()}};
  for (const Question &question : diagnosis.questions)
    document["questions"].push_back({{"asked", question.asked},
                                     {"value", question.value},
                                     {"limit", question.limit},
                                     {"yes", question.isYes()}});
  return document;
}
