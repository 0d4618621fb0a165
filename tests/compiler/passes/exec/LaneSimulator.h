//===- LaneSimulator.h - Lanes in any order that waits allow ----*- C++ -*-===//
#ifndef TCC_TESTS_COMPILER_PASSES_EXEC_LANESIMULATOR_H
#define TCC_TESTS_COMPILER_PASSES_EXEC_LANESIMULATOR_H

#include "dialects/exec/ExecOps.h"
#include <map>
#include <random>

namespace tcc::tests {

/// Runs an entry point that has its plan. A command takes time: it spoils what
/// it writes when it begins, and until it ends nobody else writes that, and
/// what it reads is right. Branches are taken, and loops repeated, at random.
class LaneSimulator {
public:
  LaneSimulator(exec::EntryOp entry, unsigned seed);

  struct Choice {
    int last = -1; ///< a lane that runs only when no other one can
    /// A command that ends only when no lane can go on beside it.
    mlir::Operation *slow = nullptr;
  };
  /// False if a command found what another one has overwritten, or no lane can
  /// go on.
  bool run(const Choice &choice);
  /// What it runs, in the order of the program.
  std::vector<mlir::Operation *> getCommands() const;

private:
  using Tag = unsigned;
  using Units = std::vector<Tag *>;
  static constexpr Tag kUnwritten = ~0u;

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
  bool isWritten(const Step &step, Tag tag);
  void write(const Step &step, Tag tag);
  bool canRun(size_t lane) const;
  bool isPutOff(size_t lane, const Choice &choice) const;
  std::vector<size_t> findReady(const Choice &choice) const;
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
