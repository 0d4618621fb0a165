//===- LaneSimulator.h - Lanes in any order that waits allow ----*- C++ -*-===//
#ifndef TCC_TESTS_COMPILER_PASSES_EXEC_LANESIMULATOR_H
#define TCC_TESTS_COMPILER_PASSES_EXEC_LANESIMULATOR_H

#include "dialects/exec/ExecOps.h"
#include <map>
#include <random>

namespace tcc::tests {

/// Runs an entry point that has its plan. A command takes time: it spoils what
/// it writes when it begins, and what it reads must be right until it ends.
class LaneSimulator {
public:
  LaneSimulator(exec::EntryOp entry, unsigned seed);

  struct Choice {
    int last = -1; ///< a lane that runs only when no other one can
  };
  /// False if a command read what another one has overwritten, or no lane can
  /// go on.
  bool run(Choice choice);

private:
  using Tag = unsigned;
  using Units = std::vector<Tag *>;
  static constexpr Tag kSpoiled = ~0u;

  /// A command as often as it runs.
  struct Step {
    mlir::Operation *op;
    size_t waitsFor = 0; ///< of a wait: one more than a step
    std::map<mlir::Operation *, Tag> expected; ///< of what it reads
  };

  void unroll(mlir::Block &block);
  void addStep(mlir::Operation &op);
  Units getUnits(exec::BufferOp buffer);
  bool readsRight(const Step &step, bool isAtEnd);
  void write(const Step &step, Tag tag);
  bool canRun(size_t lane) const;
  bool advance(size_t lane);

  std::mt19937 random;
  std::vector<Step> steps;
  std::map<mlir::Operation *, size_t> latest; ///< step of a command, so far
  std::map<mlir::Operation *, Tag> written;   ///< in the order of the program
  std::vector<Tag> arena;
  std::map<mlir::Operation *, Tag> others; ///< what lies elsewhere
  struct Lane {
    std::vector<size_t> steps;
    size_t next = 0;
    bool hasBegun = false;
  };
  std::vector<Lane> lanes;
  std::vector<bool> isDone;
};

} // namespace tcc::tests

#endif // TCC_TESTS_COMPILER_PASSES_EXEC_LANESIMULATOR_H
