//===- Diagnosis.h - What limits a run, and what would help -----*- C++ -*-===//
//
// A tree of questions about figures of a run, which a person can follow: each
// has the figure, its limit, and what follows if it is over it.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_TOOLS_TCCRUN_DIAGNOSIS_DIAGNOSIS_H
#define TCC_TOOLS_TCCRUN_DIAGNOSIS_DIAGNOSIS_H

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace tcc::tools {

/// What was measured of some updates. Times are seconds, of all updates.
struct RunFigures {
  double all = 0; ///< from the begin of the first one to the end of the last
  int64_t updates = 0;
  int64_t skipped = 0; ///< updates that changed nothing
  /// Seconds of the parts that StepProfile has.
  double compute = 0, copies = 0, communication = 0, otherLanes = 0, data = 0,
         checkpoints = 0, evaluations = 0, logs = 0, host = 0;

  /// The least time that the machine could take for the launches; 0 where its
  /// roofline is not known.
  double ideal = 0;
  double shortIdeal = 0; ///< the part of it that is of `shortLaunches`
  /// Copying batches to a device: all of it, and what nothing hid.
  double uploads = 0, exposedUploads = 0;
  /// The part of `compute` that is launches whose bytes take the machine longer
  /// than their flops; the parts that are launches of less than 5 us, and of 50
  /// us and more, which several threads can share.
  double memoryBound = 0, shortLaunches = 0, longLaunches = 0;
  double updateBound = 0; ///< the part of `memoryBound` that is the optimizer's

  double reading = 0;    ///< of samples, by all threads
  double readingCpu = 0; ///< the part of it that is on a CPU
  int workers = 0;       ///< threads that read ahead
  int threads = 1;       ///< that compute; 0: another device does
  int cpus = 1;          ///< that the process may keep busy

  /// Time in which the thread that makes updates was ready to run, but others
  /// ran; and in which it could not run, without waiting for what is known.
  /// Nothing where that is not known.
  std::optional<double> delayed = {}, stopped = {};
  std::vector<std::string> notes = {}; ///< on figures that are not whole

  bool areCheckpointsSynced = false; ///< each is waited for
};

/// What limits the run.
struct Bottleneck {
  std::string name;   ///< "storage", "compute", ...
  double share = 0;   ///< of the time
  std::string found;  ///< a sentence on what was measured
  std::string advice; ///< what to change; empty: nothing that is known
  double gain = 1;    ///< the run's time before / after that, as expected
};

/// A question of the tree, with its answer.
struct Question {
  std::string asked; ///< "waiting for batches, of the time"
  double value;
  double limit; ///< over it the answer is yes
  bool isYes() const { return value > limit; }
};

struct Diagnosis {
  Bottleneck bottleneck;
  std::vector<Question> questions; ///< in the order in which they were asked
  std::vector<std::string> notes;  ///< those of the figures
};

/// Some update was made.
Diagnosis diagnose(const RunFigures &figures);

/// Lines of text, and a JSON object.
std::string print(const Diagnosis &diagnosis);
nlohmann::ordered_json describe(const Diagnosis &diagnosis);

} // namespace tcc::tools

#endif // TCC_TOOLS_TCCRUN_DIAGNOSIS_DIAGNOSIS_H
