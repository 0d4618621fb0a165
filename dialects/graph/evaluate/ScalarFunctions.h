//===- ScalarFunctions.h - What arith and math ops compute ------*- C++ -*-===//
#ifndef TCC_DIALECTS_GRAPH_EVALUATE_SCALARFUNCTIONS_H
#define TCC_DIALECTS_GRAPH_EVALUATE_SCALARFUNCTIONS_H

#include "dialects/graph/evaluate/ScalarProgram.h"

namespace tcc {

/// The function of the op called `name` ("arith.addf"); null if it is not
/// known.
Instruction::Function getScalarFunction(llvm::StringRef name);

} // namespace tcc

#endif // TCC_DIALECTS_GRAPH_EVALUATE_SCALARFUNCTIONS_H
