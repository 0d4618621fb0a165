#include "runtime/devices/cpu/KernelPlans.h"

#include <algorithm>
#include <chrono>

using namespace tcc;
using namespace tcc::runtime;

static Dispatch takeAlternative(Dispatch dispatch, size_t index) {
  const Alternative &alternative = dispatch.alternatives[index];
  dispatch.kernel = alternative.kernel;
  dispatch.tasks = alternative.tasks;
  dispatch.alternatives = {};
  return dispatch;
}

std::string KernelPlans::nameWork(const Dispatch &dispatch) const {
  const format::Kernel &kernel = *program->kernels()->Get(dispatch.kernel);
  return nameKernelWork(kernel.work()->string_view(), dispatch.sizes, cpu,
                        threads);
}

Dispatch KernelPlans::choose(const Dispatch &dispatch) {
  Dispatch own = dispatch;
  own.alternatives = {};
  if (fastest.size() == 0)
    return own;
  auto bytes = std::as_bytes(dispatch.sizes);
  size_t sizes = std::hash<std::string_view>()(
      {reinterpret_cast<const char *>(bytes.data()), bytes.size()});
  auto [known, isNew] = choices.try_emplace({dispatch.kernel, sizes});
  std::optional<size_t> &choice = known->second;
  if (isNew) {
    const Tuning *tuning = fastest.find(nameWork(dispatch));
    for (size_t i = 0; tuning && i < dispatch.alternatives.size(); ++i)
      if (planOf(dispatch.alternatives[i].kernel) == tuning->plan)
        choice = i;
  }
  return choice ? takeAlternative(dispatch, *choice) : own;
}

//===----------------------------------------------------------------------===//
// Measurement
//===----------------------------------------------------------------------===//

namespace {

/// Times launches in turns: what else the machine does meets all of them alike.
class Race {
public:
  Race(std::span<const Dispatch> runs,
       const std::function<void(const Dispatch &)> &launch)
      : runs(runs), launch(launch) {}

  /// Launches that take so long together that a clock can tell.
  void chooseRepeats();
  /// Microseconds of each run, in each of `rounds`.
  std::vector<std::vector<double>> time(std::span<const size_t> which,
                                        int rounds) const;

private:
  double timeOne(const Dispatch &run) const;

  std::span<const Dispatch> runs;
  const std::function<void(const Dispatch &)> &launch;
  int repeats = 1;
};

} // namespace

double Race::timeOne(const Dispatch &run) const {
  auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < repeats; ++i)
    launch(run);
  std::chrono::duration<double, std::micro> time =
      std::chrono::steady_clock::now() - start;
  return time.count() / repeats;
}

void Race::chooseRepeats() {
  constexpr double kLeast = 300; // microseconds
  constexpr int kMost = 1000;
  for (const Dispatch &run : runs)
    launch(run); // loads its code
  double once = std::max(timeOne(runs.front()), 0.1);
  repeats = int(std::clamp(kLeast / once, 1.0, double(kMost)));
}

std::vector<std::vector<double>> Race::time(std::span<const size_t> which,
                                            int rounds) const {
  std::vector<std::vector<double>> times(which.size());
  for (int round = 0; round < rounds; ++round)
    for (size_t i = 0; i < which.size(); ++i) {
      size_t at = (i + round) % which.size();
      times[at].push_back(timeOne(runs[which[at]]));
    }
  return times;
}

static double medianOf(std::vector<double> values) {
  auto middle = values.begin() + values.size() / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// A gain that is smaller is taken for noise: a plan that is not faster must
/// not be taken for one. When threads wake makes more of it.
static constexpr double kLeastGain = 0.02, kLeastGainOfThreads = 0.05;

void KernelPlans::measure(const Dispatch &dispatch,
                          const std::function<void(const Dispatch &)> &launch,
                          std::vector<Measurement> &measured) {
  std::string work = nameWork(dispatch);
  if (!done.insert(work).second)
    return;
  Dispatch own = dispatch;
  own.alternatives = {};
  std::vector<Dispatch> runs = {own};
  std::vector<size_t> all = {0};
  for (size_t i = 0; i < dispatch.alternatives.size(); ++i) {
    runs.push_back(takeAlternative(dispatch, i));
    all.push_back(i + 1);
  }
  Race race(runs, launch);
  race.chooseRepeats();
  constexpr int kRounds = 7, kFinalRounds = 21;
  std::vector<double> medians;
  for (std::vector<double> &times : race.time(all, kRounds))
    medians.push_back(medianOf(std::move(times)));
  size_t best = std::ranges::min_element(medians) - medians.begin();
  measured.push_back(
      {work,
       {.microseconds = medians[0], .plan = std::string(planOf(own.kernel))}});
  if (best == 0)
    return;
  // The best of several is often the luckiest: it has to win again, alone.
  size_t finalists[] = {0, best};
  auto times = race.time(finalists, kFinalRounds);
  std::vector<double> ratios;
  for (int round = 0; round < kFinalRounds; ++round)
    ratios.push_back(times[1][round] / times[0][round]);
  // Threads that wake late make a round take any time: it has to win most.
  std::ranges::sort(ratios);
  double ratio = ratios[kFinalRounds / 2];
  bool winsMost = ratios[kFinalRounds * 3 / 4] < 1;
  double least = threads > 1 ? kLeastGainOfThreads : kLeastGain;
  if (ratio <= 1 - least && winsMost)
    measured.push_back({work,
                        {.microseconds = medians[0] * ratio,
                         .plan = std::string(planOf(runs[best].kernel))}});
}
