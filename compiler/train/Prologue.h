//===- Prologue.h - Inputs as their data have them --------------*- C++ -*-===//
#ifndef TCC_COMPILER_TRAIN_PROLOGUE_H
#define TCC_COMPILER_TRAIN_PROLOGUE_H

#include "compiler/train/Recipe.h"

#include "mlir/IR/BuiltinOps.h"

namespace tcc::train {

/// Has the model take bytes for the inputs that the recipe names: ops of its
/// own make of them what it took before, numbers from 0 to 1 less `mean`, over
/// `std`. What cannot be is among the problems then.
void addPrologues(mlir::ModuleOp module, const Recipe &recipe,
                  Problems &problems);

} // namespace tcc::train

#endif // TCC_COMPILER_TRAIN_PROLOGUE_H
