// What limits a run, by figures of runs that something limits.

#include "tools/tcc-run/diagnosis/Diagnosis.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <functional>

using namespace tcc::tools;
using testing::HasSubstr;

namespace {

/// A second of 100 updates, of which a tenth of a millisecond each is the
/// host's; kernels that use half of the machine's arithmetic, on one CPU.
RunFigures healthy() {
  RunFigures figures;
  figures.all = 1;
  figures.updates = 100;
  figures.compute = 0.98;
  figures.data = 0.01;
  figures.host = 0.01;
  figures.ideal = 0.5;
  figures.memoryBound = 0.2;
  figures.longLaunches = 0.98;
  figures.reading = figures.readingCpu = 0.01;
  figures.delayed = figures.stopped = 0;
  return figures;
}

/// The healthy run, of which something else takes `seconds`.
template <typename Seconds>
RunFigures with(Seconds RunFigures::*part, double seconds) {
  RunFigures figures = healthy();
  figures.*part = seconds;
  figures.compute = 0.98 - seconds;
  return figures;
}

struct Case {
  const char *name;   ///< of the bottleneck
  const char *advice; ///< part of it
  double gain;
  std::function<RunFigures()> make;
};

const Case kCases[] = {
    {"compute", "", 1, healthy},
    {"compute", "", 1, [] { return with(&RunFigures::data, 0.09); }},
    {"storage", "data.cache=", 2,
     [] {
       RunFigures figures = with(&RunFigures::data, 0.5);
       figures.reading = 1;
       figures.readingCpu = 0.1;
       return figures;
     }},
    {"decode", "ram:SIZE", 2,
     [] {
       RunFigures figures = with(&RunFigures::data, 0.5);
       figures.reading = figures.readingCpu = 1;
       figures.workers = 1;
       figures.cpus = 2;
       return figures;
     }},
    {"decode", "data.workers=7", 2,
     [] {
       RunFigures figures = with(&RunFigures::data, 0.5);
       figures.reading = figures.readingCpu = 1;
       figures.workers = 1;
       figures.cpus = 8;
       return figures;
     }},
    {"checkpoints", "--checkpoint-every", 1.25,
     [] { return with(&RunFigures::checkpoints, 0.2); }},
    {"checkpoints", "no --sync-checkpoints", 1.25,
     [] {
       RunFigures figures = with(&RunFigures::checkpoints, 0.2);
       figures.areCheckpointsSynced = true;
       return figures;
     }},
    {"communication", "an accumulate of 4 times", 4.0 / 3,
     [] { return with(&RunFigures::communication, 1.0 / 3); }},
    {"transfer", "", 1, [] { return with(&RunFigures::copies, 0.25); }},
    {"transfer", "memory budget", 4.0 / 3,
     [] { // on a device, whose inputs are hidden
       RunFigures figures = with(&RunFigures::copies, 0.25);
       figures.uploads = 0.75;
       figures.threads = 0;
       return figures;
     }},
    {"transfer", "u8", 2.5,
     [] { // a quarter of 0.8 s, of which 0.1 s are hidden
       RunFigures figures = with(&RunFigures::exposedUploads, 0.7);
       figures.uploads = 0.8;
       return figures;
     }},
    {"transfer", "u8", 4.0 / 3,
     [] { // what is hidden now hides all of a quarter
       RunFigures figures = with(&RunFigures::exposedUploads, 0.25);
       figures.uploads = 0.75;
       return figures;
     }},
    {"other processes", "doctor", 1.25,
     [] { return with(&RunFigures::delayed, 0.2); }},
    {"threads", "there are 2: --threads", 1.25,
     [] {
       RunFigures figures = with(&RunFigures::delayed, 0.2);
       figures.threads = 8;
       figures.cpus = 2;
       return figures;
     }},
    {"threads", "data.workers", 1.25,
     [] {
       RunFigures figures = with(&RunFigures::delayed, 0.2);
       figures.threads = 2;
       figures.workers = 2;
       figures.reading = 1;
       figures.readingCpu = 0.5;
       figures.cpus = 2;
       return figures;
     }},
    {"other processes", "doctor", 1.25,
     [] { // which hold up a thread that reads, too
       RunFigures figures = with(&RunFigures::delayed, 0.2);
       figures.workers = 1;
       figures.reading = 0.3;
       return figures;
     }},
    {"other processes", "doctor", 1.25,
     [] { // a thread that reads, but has little to do
       RunFigures figures = with(&RunFigures::delayed, 0.2);
       figures.threads = 2;
       figures.workers = 1;
       figures.cpus = 2;
       return figures;
     }},
    {"compute", "", 1,
     [] { // launches that are too short to share
       RunFigures figures = healthy();
       figures.longLaunches = 0;
       figures.cpus = 8;
       return figures;
     }},
    {"decode", "ram:SIZE", 2,
     [] { // eight threads on two CPUs
       RunFigures figures = with(&RunFigures::data, 0.5);
       figures.reading = 8;
       figures.readingCpu = 2;
       figures.workers = 7;
       figures.cpus = 2;
       return figures;
     }},
    {"evaluations", "eval.every", 5,
     [] { return with(&RunFigures::evaluations, 0.8); }},
    {"logs", "--tensorboard-histograms", 1.25,
     [] { return with(&RunFigures::logs, 0.2); }},
    {"CPU quota", "doctor", 2, [] { return with(&RunFigures::stopped, 0.5); }},
    {"skipped updates", "--set loss_scale", 1,
     [] {
       RunFigures figures = healthy();
       figures.skipped = 50;
       return figures;
     }},
    {"threads", "--threads 2", 1 / (0.02 + 0.98 / 1.6),
     [] {
       RunFigures figures = healthy();
       figures.cpus = 2;
       return figures;
     }},
    {"launches", "larger batches", 1 / (1 - 0.15),
     [] {
       RunFigures figures = with(&RunFigures::host, 0.3);
       figures.ideal = 0.4;
       return figures;
     }},
    {"launches", "larger batches", 1 / (1 - (0.01 + 0.9 - 0.08) / 2),
     [] { // for a tenth of what the machine can, also where CPUs are idle
       RunFigures figures = healthy();
       figures.shortLaunches = 0.9;
       figures.ideal = 0.1;
       figures.shortIdeal = 0.08;
       figures.cpus = 8;
       return figures;
     }},
    {"launches", "larger batches", 1 / (1 - 0.1),
     [] { // on a GPU, whose roofline is not known
       RunFigures figures = with(&RunFigures::host, 0.2);
       figures.ideal = 0;
       figures.threads = 0;
       return figures;
     }},
    {"memory bandwidth", "bf16", 1 / (1 - 0.45),
     [] {
       RunFigures figures = healthy();
       figures.memoryBound = 0.9;
       return figures;
     }},
    {"memory bandwidth", "bf16", 1 / (1 - 0.3),
     [] { // what the optimizer reads stays as it is
       RunFigures figures = healthy();
       figures.memoryBound = 0.9;
       figures.updateBound = 0.3;
       return figures;
     }},
    {"memory bandwidth", "batch.micro", 1 / (1 - 0.45),
     [] {
       RunFigures figures = healthy();
       figures.memoryBound = 0.9;
       figures.updateBound = 0.5;
       return figures;
     }},
};

TEST(Diagnosis, NamesWhatLimitsARun) {
  for (const Case &each : kCases) {
    Bottleneck found = diagnose(each.make()).bottleneck;
    EXPECT_EQ(found.name, each.name);
    EXPECT_THAT(found.advice, HasSubstr(each.advice)) << each.name;
    EXPECT_NEAR(found.gain, each.gain, 1e-9) << each.name;
  }
}

TEST(Diagnosis, MostOfTheTimeComesFirst) {
  RunFigures figures = with(&RunFigures::data, 0.2);
  figures.checkpoints = 0.3;
  figures.compute = 0.4;
  EXPECT_EQ(diagnose(figures).bottleneck.name, "checkpoints");
  figures.data = 0.4;
  EXPECT_EQ(diagnose(figures).bottleneck.name, "decode");
}

/// A device that computes is no matter of the host's threads.
TEST(Diagnosis, ADeviceHasNoThreads) {
  RunFigures figures = healthy();
  figures.threads = 0;
  figures.cpus = 16;
  EXPECT_EQ(diagnose(figures).bottleneck.name, "compute");
}

/// What is not known is not asked, and said.
TEST(Diagnosis, UnknownFiguresAreNoZeros) {
  RunFigures figures = healthy();
  size_t all = diagnose(figures).questions.size();
  figures.delayed = figures.stopped = std::nullopt;
  figures.notes = {"how long others ran is not known: no file"};
  Diagnosis diagnosis = diagnose(figures);
  EXPECT_EQ(diagnosis.questions.size(), all - 2);
  EXPECT_THAT(print(diagnosis), HasSubstr("note: how long others ran is not "
                                          "known: no file\n"));
  EXPECT_EQ(describe(diagnosis)["notes"].size(), 1u);
}

TEST(Diagnosis, QuestionsSayHowItWasFound) {
  Diagnosis diagnosis = diagnose(with(&RunFigures::checkpoints, 0.2));
  size_t answers = 0;
  for (const Question &question : diagnosis.questions)
    answers += question.isYes();
  EXPECT_EQ(answers, 1u);
  std::string text = print(diagnosis);
  EXPECT_THAT(text, HasSubstr("20.0 %  waiting for checkpoints, of the time"));
  EXPECT_THAT(text, HasSubstr("over 10 %? yes"));
  EXPECT_THAT(text, HasSubstr("bottleneck: checkpoints: 20 % of the time"));
  EXPECT_THAT(text, HasSubstr("about 1.2 times as fast"));
  auto document = describe(diagnosis);
  EXPECT_EQ(document["bottleneck"], "checkpoints");
  EXPECT_EQ(document["questions"].size(), diagnosis.questions.size());
}

} // namespace
