//===- VariableOffsets.h - Where variables lie ------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_PACKAGE_VARIABLEOFFSETS_H
#define TCC_RUNTIME_PACKAGE_VARIABLEOFFSETS_H

#include "runtime/package/Program_generated.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace tcc::runtime {

/// Bytes of a variable that was verified.
uint64_t byteCountOf(const format::Variable &variable);

/// The bytes from its begin that are its own: those that it has, or more.
uint64_t roomOf(const format::Variable &variable);

/// How many ranks divide variables of the program; 0 if each rank has all.
uint32_t rankCountOf(const format::Program &program);

/// Where each variable begins, in bytes, and last how many all have: they lie
/// one after the other, each at the next multiple of kTensorAlignment, or
/// behind the room of the one before. Nothing
/// if no memory is so large. The variables were verified.
std::optional<std::vector<uint64_t>>
variableOffsets(const format::Program &program);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_PACKAGE_VARIABLEOFFSETS_H
