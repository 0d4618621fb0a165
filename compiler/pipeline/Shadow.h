//===- Shadow.h - What low precision costs, op by op ------------*- C++ -*-===//
//
// A function in narrow floats is evaluated beside its shadow, the same ops on
// tensors of f32: each op's results are compared with the shadow's. The
// reference evaluator does both, so this is for small models.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_PIPELINE_SHADOW_H
#define TCC_COMPILER_PIPELINE_SHADOW_H

#include "compiler/pipeline/Phases.h"
#include "frontends/WeightStore.h"

#include "mlir/IR/BuiltinOps.h"

namespace tcc {

/// Fills the table of `report` for the training step or @main of `module`,
/// which is not simplified yet. Variables have the values that @init gives
/// them, other inputs are random: floats in [0, 1), integers in the range of an
/// index.
void reportShadow(mlir::ModuleOp module, const WeightStore &weights,
                  const Target &target, const PrecisionRules &precision,
                  CompileReport &report);

} // namespace tcc

#endif // TCC_COMPILER_PIPELINE_SHADOW_H
