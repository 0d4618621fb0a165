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
  Bottleneck explainCommunication() const;
  Bottleneck explainUploads() const;
  Bottleneck explainCopies() const;
  Bottleneck explainLaunches() const;
  Bottleneck explainMemory() const;
  Bottleneck explainCompute();
  double gainOfThreads() const;
  int countThreads() const { return std::max(run.threads, 1) + run.workers; }
  /// CPUs that the run keeps busy, or would if its training threads had one
  /// each. Whom another process holds up while it reads uses none.
  double countBusy() const {
    return std::max(run.threads, 1) + shareOf(run.readingCpu);
  }

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

/// Who waits for a disk uses no CPU; who waits for a CPU, with others of this
/// process, uses its share of them.
Bottleneck Tree::explainData() {
  double cpuShare = run.reading > 0 ? run.readingCpu / run.reading : 1;
  double fairShare = std::min(1.0, double(run.cpus) / countThreads());
  std::string waited =
      concat(percent(shareOf(run.data)), " of the time is waiting for batches");
  if (!is("reading samples, of which on a CPU", cpuShare, fairShare / 2))
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
      concat(percent(shareOf(*run.delayed)),
             " of the time others had the CPU while this thread wanted it");
  if (countBusy() > run.cpus + kWorth)
    return {"threads", shareOf(*run.delayed), std::move(found),
            concat("have no more of them than CPUs, of which there are ",
                   run.cpus, ": --threads, --set data.workers"),
            gainOf(*run.delayed)};
  return {
      "other processes", shareOf(*run.delayed), std::move(found),
      "end them, or run elsewhere; tcc-run doctor says how busy the machine "
      "is",
      gainOf(*run.delayed)};
}

/// An exchange for several times as many samples takes what it took.
Bottleneck Tree::explainCommunication() const {
  constexpr int kTimes = 4;
  return {"communication", shareOf(run.communication),
          concat(percent(shareOf(run.communication)),
                 " of the time is waiting for other ranks"),
          concat("exchange less often: an accumulate of ", kTimes,
                 " times what it is (--set accumulate=N), or larger batches; "
                 "tcc --check lists what hides each message"),
          gainOf(run.communication * (kTimes - 1) / kTimes)};
}

/// What hid a part of the uploads hides a larger part of smaller ones.
Bottleneck Tree::explainUploads() const {
  constexpr double kNarrower = 4; // an f32 / an u8
  double hidden = run.uploads - run.exposedUploads;
  double left = std::max(run.uploads / kNarrower - hidden, 0.0);
  return {"transfer", shareOf(run.exposedUploads),
          concat(percent(shareOf(run.exposedUploads)),
                 " of the time is copying batches to the device"),
          "copy less: [input.NAME] dtype = \"u8\" for images",
          gainOf(run.exposedUploads - left)};
}

Bottleneck Tree::explainCopies() const {
  double share = shareOf(run.copies);
  std::string found =
      concat(percent(share), " of the time is copies within the program");
  if (run.threads > 0)
    return {"transfer", share, std::move(found), /*advice=*/"", 1};
  return {"transfer", share, std::move(found),
          "a larger memory budget: values that have no room on the device are "
          "copied",
          gainOf(run.copies)};
}

void Tree::askWaits() {
  auto isWorth = [&](const char *what, double seconds) {
    return is(concat(what, ", of the time"), shareOf(seconds), kWorth);
  };
  if (isWorth("waiting for batches", run.data))
    consider(explainData());
  if (isWorth("waiting for checkpoints", run.checkpoints))
    consider(explainCheckpoints());
  if (isWorth("evaluations", run.evaluations))
    consider({"evaluations", shareOf(run.evaluations),
              concat(percent(shareOf(run.evaluations)),
                     " of the time is evaluations"),
              "evaluate less often: --set eval.every=N",
              gainOf(run.evaluations)});
  if (isWorth("writing logs", run.logs))
    consider(
        {"logs", shareOf(run.logs),
         concat(percent(shareOf(run.logs)), " of the time is writing logs"),
         "a larger K of --tensorboard-histograms, or a faster disk",
         gainOf(run.logs)});
  if (isWorth("waiting for other ranks", run.communication))
    consider(explainCommunication());
  if (isWorth("copies that nothing hides", run.copies))
    consider(explainCopies());
  if (isWorth("copies of batches that nothing hides", run.exposedUploads))
    consider(explainUploads());
  if (run.delayed && isWorth("ready to run while others ran", *run.delayed))
    consider(explainDelay());
  if (run.stopped &&
      isWorth("neither running, nor ready, nor waiting as above", *run.stopped))
    consider(
        {"CPU quota", shareOf(*run.stopped),
         concat(percent(shareOf(*run.stopped)),
                " of the time something kept the process from running"),
         "give its container more CPUs and memory (tcc-run doctor says how "
         "much it has), and let nobody stop it",
         gainOf(*run.stopped)});
  double skipped = double(run.skipped) / double(run.updates);
  if (is("skipped, of all updates", skipped, kWorth))
    consider(
        {"skipped updates", skipped,
         concat(percent(skipped),
                " of the updates changed nothing: their gradients were not "
                "finite"),
         "a smaller rate (--set lr=N), a smaller loss scale where there is "
         "one (--set loss_scale=N), or other data",
         1});
}

/// Amdahl's law. Threads share caches and memory: not all of them help whole.
double Tree::gainOfThreads() const {
  constexpr double kEfficiency = 0.8;
  double more = kEfficiency * run.cpus / run.threads,
         part = shareOf(run.longLaunches);
  return 1 / (1 - part + part / std::max(more, 1.0));
}

/// Larger batches spread what a launch costs beside its work: about half of it
/// is left with twice the samples.
Bottleneck Tree::explainLaunches() const {
  // A short kernel takes as long for few samples as for some more.
  double idle = run.host;
  if (run.ideal > 0)
    idle += std::max(run.shortLaunches - run.shortIdeal, 0.0);
  return {
      "launches", shareOf(idle),
      concat(percent(shareOf(run.host)),
             " of the time is the host's, between kernels and updates, and ",
             percent(run.shortLaunches / std::max(run.compute, 1e-9)),
             " of computing is kernels of less than 5 us"),
      "larger batches: batch.micro", gainOf(idle / 2)};
}

/// A batch reads parameters once for however many samples, and an update also
/// their moments, in f32 where products are in bf16, too.
Bottleneck Tree::explainMemory() const {
  std::string found =
      concat(percent(run.memoryBound / run.compute),
             " of computing is kernels whose bytes take the machine longer "
             "than their operations");
  if (run.updateBound > run.memoryBound / 2)
    return {"memory bandwidth", shareOf(run.memoryBound),
            concat(found, ", most of it the optimizer's"),
            "twice as many samples in a batch: batch.micro",
            gainOf(run.memoryBound / 2)};
  return {"memory bandwidth", shareOf(run.memoryBound), std::move(found),
          "half of the bytes, unless the recipe has it: precision.compute = "
          "\"bf16\"",
          gainOf((run.memoryBound - run.updateBound) / 2)};
}

/// Nothing else takes much of the time.
Bottleneck Tree::explainCompute() {
  constexpr double kMuchHost = 0.15, kMostShort = 0.5, kMostBound = 0.6;
  double compute = std::max(run.compute, 1e-9);
  double part = shareOf(run.compute + run.otherLanes);
  bool isHosts = is("the host between kernels and updates, of the time",
                    shareOf(run.host), kMuchHost);
  if (isHosts || is("kernels of less than 5 us, of computing",
                    run.shortLaunches / compute, kMostShort))
    return explainLaunches();
  if (run.threads > 0 &&
      is("CPUs that do not compute, of all", 1 - double(run.threads) / run.cpus,
         0) &&
      gainOfThreads() > 1 + kWorth)
    return {"threads", part,
            concat(run.threads, " of ", run.cpus, " CPUs compute"),
            concat("--threads ", run.cpus), gainOfThreads()};
  if (is("kernels that the memory's bandwidth limits, of computing",
         run.memoryBound / compute, kMostBound))
    return explainMemory();
  return {"compute", part, concat(percent(part), " of the time is computing"),
          /*advice=*/"", 1};
}

Diagnosis Tree::ask() {
  askWaits();
  if (diagnosis.bottleneck.name.empty())
    diagnosis.bottleneck = explainCompute();
  diagnosis.notes = run.notes;
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
  for (const std::string &note : diagnosis.notes)
    text += concat("note: ", note, "\n");
  const Bottleneck &found = diagnosis.bottleneck;
  text += concat("bottleneck: ", found.name, ": ", found.found, "\n");
  if (found.advice.empty())
    return text;
  text += concat("what helps: ", found.advice);
  if (found.gain > 1) {
    char gain[32];
    std::snprintf(gain, sizeof(gain), "%.1f", found.gain);
    text += concat(": about ", gain, " times as fast");
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
      {"notes", diagnosis.notes},
      {"questions", nlohmann::ordered_json::array()}};
  for (const Question &question : diagnosis.questions)
    document["questions"].push_back({{"asked", question.asked},
                                     {"value", question.value},
                                     {"limit", question.limit},
                                     {"yes", question.isYes()}});
  return document;
}
