//===- RandomProgram.h - Programs that start commands -----------*- C++ -*-===//
#ifndef TCC_TESTS_COMPILER_PASSES_EXEC_RANDOMPROGRAM_H
#define TCC_TESTS_COMPILER_PASSES_EXEC_RANDOMPROGRAM_H

#include <string>

namespace tcc::tests {

/// A module with one entry point of launches, copies, branches and loops, and
/// of copies and collectives of two groups that are started in any of their
/// blocks; what is in flight is not written, and what it writes not used.
std::string makeRandomProgram(unsigned seed);

} // namespace tcc::tests

#endif // TCC_TESTS_COMPILER_PASSES_EXEC_RANDOMPROGRAM_H
