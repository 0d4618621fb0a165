//===- Simulation.h - What a choice of values costs -------------*- C++ -*-===//
#ifndef TCC_COMPILER_PASSES_EXEC_RECOMPUTE_SIMULATION_H
#define TCC_COMPILER_PASSES_EXEC_RECOMPUTE_SIMULATION_H

#include "compiler/passes/exec/recompute/Trace.h"

namespace tcc::exec {

/// Which values are not kept over their gap but made again when a command wants
/// them.
struct Choice {
  std::vector<bool> isDropped;
  /// A value that is made again early, for another one, is kept until its own
  /// next use; otherwise it may have to be made twice.
  bool holds = true;
};

/// A value in memory for some steps.
using InstanceId = unsigned;

/// One step of the program that a choice leads to: a command, or a unit.
struct Step {
  bool isUnit;
  unsigned id;
  /// The values of a command; the inputs (kNone: no scratch) and outputs of a
  /// unit.
  llvm::SmallVector<InstanceId> reads, writes;
};

/// Walks the commands in order and makes values when they are wanted. One
/// object runs many choices, one at a time.
class Simulation {
public:
  explicit Simulation(const Trace &trace);

  /// False if a value that is wanted cannot be made again there.
  bool run(const Choice &choice);

  // Results of the last run:
  double getMicroseconds() const { return microseconds; }
  int64_t getPeak() const;
  /// The sum over all steps of the bytes above `target`.
  double getExcess(int64_t target) const;
  /// Bytes that are live at each step.
  llvm::ArrayRef<int64_t> getLive() const { return live; }
  llvm::ArrayRef<Step> getSteps() const { return steps; }
  llvm::ArrayRef<LiveRange> getInstances() const { return instances; }

private:
  bool isSkipped(CommandId command) const;
  bool provide(ValueId value, CommandId now);
  bool runUnit(unsigned unit, CommandId now);
  InstanceId addInstance(int64_t bytes);
  void use(ValueId value, Step &step);
  void settle(ValueId value, CommandId now);
  bool runCommand(CommandId command);
  void countLive();
  void sharePairs(std::vector<int64_t> &change) const;

  const Trace &trace;
  const Choice *choice = nullptr;
  unsigned window; ///< commands for which what may be wanted again is kept
  /// Where each value lies, and until which command it may be used there; -1:
  /// it is not there yet.
  std::vector<InstanceId> current;
  std::vector<int64_t> residentUntil;
  std::vector<Step> steps;
  std::vector<LiveRange> instances;
  std::vector<int64_t> live;
  double microseconds = 0;
};

} // namespace tcc::exec

#endif // TCC_COMPILER_PASSES_EXEC_RECOMPUTE_SIMULATION_H
