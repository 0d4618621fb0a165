//===- Phases.h - The passes of the compiler, in order ----------*- C++ -*-===//
#ifndef TCC_COMPILER_PIPELINE_PHASES_H
#define TCC_COMPILER_PIPELINE_PHASES_H

#include "compiler/target/Target.h"
#include "tcc/compiler.h"

#include "mlir/Pass/PassManager.h"
#include <chrono>
#include <map>
#include <optional>

namespace tcc {

/// The phases of a compilation, in order.
enum class Phase {
  Import,
  Recognize,
  Differentiate,
  Simplify,
  Fuse,
  Lower,
  Plan,
  Codegen,
  Package
};

std::optional<Phase> findPhase(llvm::StringRef name);

/// Wall seconds of phases.
class PhaseTimes {
public:
  void add(Phase phase, double more) { seconds[phase] += more; }
  void add(const PhaseTimes &others);
  /// The phases that ran, by their names, in order, with their wall seconds.
  std::vector<std::pair<std::string, double>> list() const;

private:
  std::map<Phase, double> seconds;
};

/// Adds the time that it lives.
class PhaseTimer {
public:
  PhaseTimer(PhaseTimes &times, Phase phase) : times(times), phase(phase) {}
  PhaseTimer(const PhaseTimer &) = delete;
  ~PhaseTimer();

private:
  PhaseTimes &times;
  Phase phase;
  std::chrono::steady_clock::time_point start =
      std::chrono::steady_clock::now();
};

/// What products read; those that a glob names, by the node or a parameter, and
/// their gradients, read f32.
struct PrecisionRules {
  Precision type = Precision::F32;
  std::vector<std::string> keepF32;
};

/// The gradients of the sum of output `of` (empty: none) with respect to
/// inputs.
struct GradientRequest {
  std::string of;
  std::vector<std::string> wrt;
};

/// What exporters wrote out in small ops is found again.
void addRecognition(mlir::OpPassManager &pm);
/// What follows from sizes that became known.
void addCleanup(mlir::OpPassManager &pm);
/// What is written in f32 is computed in f64.
void addWidening(mlir::OpPassManager &pm);
/// Attention whose gradients have kernels is found before it is differentiated:
/// the products that it would else become are stored.
void addAttentionForGradients(mlir::OpPassManager &pm, const Target &target,
                              const PrecisionRules &precision);
/// @main also returns the gradients.
void addDifferentiation(mlir::OpPassManager &pm,
                        const GradientRequest &gradients);
/// The first part of the simplification: what is computed, and in which types.
void addArithmetic(mlir::OpPassManager &pm, const Target &target,
                   const PrecisionRules &precision);
/// Tensors only: the graph becomes as small as it can be, and what depends on
/// weights alone moves to @prepare.
void addSimplification(mlir::OpPassManager &pm, const Target &target,
                       const PrecisionRules &precision);
/// Each kernel becomes a graph.fused op.
void addFusion(mlir::OpPassManager &pm, const Target &target);
/// Functions become exec entries; kernels are outlined, equal ones merged.
void addLowering(mlir::OpPassManager &pm);
/// Commands get their order.
void addScheduling(mlir::OpPassManager &pm);
/// Commands get it again after some were added: another may be better now.
void addRescheduling(mlir::OpPassManager &pm);
/// Buffers get their places.
void addPlacement(mlir::OpPassManager &pm);

/// Makes each phase a flag of tcc-opt: --tcc-phase-NAME.
void registerPhases();

} // namespace tcc

#endif // TCC_COMPILER_PIPELINE_PHASES_H
