//===- tcc/compiler.h - Compiling a model to a package ----------*- C++ -*-===//
//
// The compiler as a library. `compile` is thread-safe.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_H
#define TCC_COMPILER_H

#include "tcc/import_options.h"
#include "tcc/memory_use.h"
#include "tcc/precision.h"
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tcc {

/// What `compile` writes.
enum class Artifact {
  Package,  ///< the file that the runtime opens
  Graph,    ///< MLIR after simplification
  Fused,    ///< MLIR with one graph.fused op a kernel
  Exec,     ///< MLIR of the planned program
  Kernels,  ///< MLIR of the kernels as loops
  Assembly, ///< of the host's kernels, for the first CPU
  Ptx,      ///< of the device's kernels, for the first arch
};

/// Whether a package for a device has its kernels for the host too, to be run
/// by the emulator; with what it needs to find races.
enum class Emulation { None, Plain, Race };

struct CompileOptions {
  /// The model file, and the file to write; "-" is the standard output, which
  /// takes text only.
  std::string model, output;
  /// Where the package's kernels run but for those of `prepare`, which are the
  /// host's: the name of a target, as `tcc --help` lists.
  std::string target = "cpu";
  /// CPU names, "native" for this machine's: one variant of the host's code
  /// each. Empty: native, or x86-64-v3 where the kernels run on a device.
  std::vector<std::string> cpus;
  /// GPUs as CUDA names them, "sm_90": machine code for each. The package also
  /// has PTX for the oldest, which later ones take; {"ptx"} is no GPU's
  /// code, {"none"} not even PTX. Empty: sm_80, sm_90 and sm_100.
  std::vector<std::string> archs;
  Emulation emulation = Emulation::None;
  ImportOptions import;
  /// A safetensors file with values for the model's weights; empty: its own.
  std::string weightsFile;
  Precision precision = Precision::F32;
  /// A recipe (TOML): the package trains the model. It decides the precision.
  std::string recipeFile;
  /// An output, empty for none, and inputs: the gradients of the sum of its
  /// elements with respect to them are further outputs.
  std::string gradientOf;
  std::vector<std::string> gradientWrt;
  /// The most bytes that the program may need, as "22GiB", and how many of them
  /// are left for what is not planned: a CUDA context, say. Empty: no limit;
  /// what the recipe says.
  std::string memoryBudget, reserve;
  /// Threads that it will run on, whose scratch counts; 0: this machine's
  /// cores.
  int threads = 0;
  /// Plans of each kernel that takes long, its own among them, of which
  /// `tcc-run tune` finds the fastest: 1 or more.
  int candidates = 1;
  /// What `tcc-run tune` wrote: kernels get the plans that it found to be the
  /// fastest. Empty: nothing is known.
  std::string tuneCache;
  Artifact artifact = Artifact::Package;
  /// Ends after the phase of this name (see getPhaseNames); nothing is written.
  std::string stopAfter;
  /// Also find what low precision costs, op by op: takes its time.
  bool comparesPrecision = false;
  /// Threads that compile; 0: as many as the machine has cores.
  int jobs = 0;
  /// A folder with code of kernels that were compiled before, which is read and
  /// added to; see getCacheFolder. Empty: none. Packages do not depend on it.
  std::string cacheFolder;
  /// Whether a folder that cannot be used is an error, or a note.
  bool requiresCache = true;
  /// Whether the report and the package say what was decided, and why. Nothing
  /// else depends on it.
  bool recordsDecisions = true;
};

/// How far the operands and results of an op are from what they would be in
/// f32: root mean squares, as parts of those of the values.
struct ShadowRow {
  std::string node, op;
  double before, after;
};

/// The bytes that a program allocates: all of them but inputs and outputs.
struct MemoryPlan {
  int64_t constants = 0; ///< weights, mapped
  int64_t variables = 0; ///< of a program that trains
  int64_t states = 0;
  int64_t arena = 0;     ///< of the entry point that needs most
  int64_t workers = 0;   ///< scratch of all threads
  int64_t workspace = 0; ///< of libraries
  int64_t faults = 0;    ///< what launches on a device say of indices
  int64_t passage = 0;   ///< of copies on a device that overlap

  int64_t getFixed() const {
    return constants + variables + states + workers + workspace + passage;
  }
  /// What a memory budget holds: all but the places for faults, 16 bytes a
  /// launch, whose number follows from what is computed again.
  int64_t getBudgeted() const { return getFixed() + arena; }
  int64_t getTotal() const { return getBudgeted() + faults; }
};

/// A kernel that a run or training step launches, at the upper bounds of the
/// dimensions. The cost model predicts the microseconds for a typical machine,
/// not for this one: bytes and arithmetic take theirs at the same time.
struct LaunchUse {
  std::string node, op, module; ///< of the model; empty: it does not say
  std::string phase;            ///< of a training step: "forward", "backward"
  int64_t flops = 0, bytes = 0;
  double start = 0, memory = 0, arithmetic = 0;
};

/// What happened. Nothing was written unless `exitCode` is 0.
struct CompileReport {
  int exitCode = 0; // as `tcc --help` lists
  /// Lines for the user: all problems; what is worth knowing.
  std::vector<std::string> problems, notes;
  /// A line for each tensor and dropout of a model that is trained.
  std::vector<std::string> parameters;
  int64_t ops = 0, kernels = 0;
  int64_t arenaBytes = 0, arenaBoundBytes = 0, weightBytes = 0;
  MemoryPlan memory; ///< of a process alone
  /// The memory of each of several ranks, where the package can have them.
  std::optional<MemoryPlan> memoryOfRanks;
  std::vector<ArenaUse> arenas; ///< of the entry points
  /// Messages of the update of several ranks, in the order of their starts.
  std::vector<MessageUse> messages;
  /// With a budget: what it costs the entry points.
  std::vector<EntryRecompute> recomputes;
  /// With a budget: the predicted time of the slowest entry point over that
  /// with all values kept, less 1.
  double recomputedShare = 0;
  /// The samples of a pass, where the recipe leaves them to the budget.
  int64_t microBatch = 0;
  /// Work of one run or training step at the upper bounds of the dimensions:
  /// `bytes` are what its launches read and write, each tensor once a launch.
  int64_t launches = 0, flops = 0, bytes = 0;
  std::vector<LaunchUse> launchUses;
  int64_t libraryCalls = 0; // of the launches: those that a library may take
  /// Pieces of code, of one kernel for one machine each, that the cache had,
  /// and those that were made; 0 without one.
  int64_t cacheHits = 0, cacheMisses = 0;
  double seconds = 0;
  /// Wall seconds of each phase that ran, in order.
  std::vector<std::pair<std::string, double>> phases;
  std::string decisions; // JSON
  /// In order, or why there are none.
  std::vector<ShadowRow> shadow;
  std::string shadowNote;
  /// After an internal error: the module that it happened on, as text.
  std::string reproducer;
};

CompileReport compile(const CompileOptions &options);

/// The folder of code in this user's cache ($XDG_CACHE_HOME/tcc/code, else
/// ~/.cache/tcc/code); empty if there is none.
std::string getCacheFolder();

/// The phases, in order.
const std::vector<std::string> &getPhaseNames();

} // namespace tcc

#endif // TCC_COMPILER_H
