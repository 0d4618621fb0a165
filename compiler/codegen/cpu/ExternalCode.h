//===- ExternalCode.h - Kernels that come as objects ------------*- C++ -*-===//
#ifndef TCC_COMPILER_CODEGEN_CPU_EXTERNALCODE_H
#define TCC_COMPILER_CODEGEN_CPU_EXTERNALCODE_H

#include "compiler/codegen/cpu/object/EmitObjects.h"
#include "dialects/graph/GraphDialect.h"

namespace tcc::cpu {

/// Why `code` cannot be linked into an image as `kernel`; empty if it can. All
/// that is wrong is listed.
std::vector<std::string> checkCode(graph::CustomKernelAttr kernel,
                                   graph::CustomCodeAttr code);

/// The objects that kernels of a module call, each once, for `cpu`: the
/// kernel's function has the name that calls have, and all else is local.
mlir::FailureOr<std::vector<Object>>
collectExternals(llvm::ArrayRef<exec::KernelOp> kernels, const Cpu &cpu);

} // namespace tcc::cpu

#endif // TCC_COMPILER_CODEGEN_CPU_EXTERNALCODE_H
