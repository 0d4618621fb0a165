//===- Register.h - Dialects and passes of the compiler ---------*- C++ -*-===//
#ifndef TCC_COMPILER_PIPELINE_REGISTER_H
#define TCC_COMPILER_PIPELINE_REGISTER_H

namespace mlir {
class DialectRegistry;
}

namespace tcc {

/// The dialects of modules from import to code generation, and the targets.
void registerAllTccDialects(mlir::DialectRegistry &registry);

/// All passes and phases, by their flags.
void registerAllTccPasses();

} // namespace tcc

#endif // TCC_COMPILER_PIPELINE_REGISTER_H
