//===- LineProgram.h - A package that fits a line ---------------*- C++ -*-===//
#ifndef TCC_TESTS_RUNTIME_TRAIN_LINEPROGRAM_H
#define TCC_TESTS_RUNTIME_TRAIN_LINEPROGRAM_H

#include "tests/runtime/Fixture.h"

namespace tcc::tests {

inline constexpr int64_t kLineBatch = 4, kSmallLineBatch = 2;

/// Learns w of y = w x from batches of four by gradient descent: variables w
/// (0.5 at first), its gradient, set/lr (0.1), step/sums and fields of the
/// step, and all entry points of a training package.
ProgramBuilder lineProgram();

/// The same with variants of its entry points for batches of two.
ProgramBuilder sizedLineProgram();

/// The same compiled for several ranks: with step/rank and the entry points
/// that add up gradient and sums over ranks, on lane 1.
ProgramBuilder rankedLineProgram();

/// That one with a slot of eight elements that two ranks divide, five of
/// "sum/w" and three of "sum/b".
ProgramBuilder dividedLineProgram();

/// The ranked one with updates of so many batches, whose sums over ranks are
/// exact.
ProgramBuilder exactLineProgram(uint32_t batches);

} // namespace tcc::tests

#endif // TCC_TESTS_RUNTIME_TRAIN_LINEPROGRAM_H
