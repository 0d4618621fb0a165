//===- Library.h - Functions that kernels call ------------------*- C++ -*-===//
//
// A package imports nothing, so what its kernels call comes with them: our own
// vectorisable functions as bitcode, which is inlined, and functions of a C
// library as an object, of which the linker keeps what is used.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_CODEGEN_CPU_OBJECT_LIBRARY_H
#define TCC_COMPILER_CODEGEN_CPU_OBJECT_LIBRARY_H

#include "mlir/Pass/Pass.h"
#include "llvm/ADT/StringRef.h"
#include <memory>

namespace llvm {
class Module;
} // namespace llvm

namespace tcc::cpu {

/// LLVM bitcode of library/*.cpp.
llvm::StringRef getLibraryBitcode();
/// Relocatable object with the C library's functions, one section each.
llvm::StringRef getLibraryObject();
/// Whether it has a function `name`.
bool hasLibraryFunction(llvm::StringRef name);

/// Links the functions of the bitcode that `module` calls into it, to be
/// inlined. False if the bitcode does not fit.
bool linkLibrary(llvm::Module &module);

/// Whose functions kernels call beside our own: a C library's on the host,
/// libdevice's on a GPU, whose names are the same after a prefix.
enum class FunctionSource { CLibrary, Libdevice };
inline constexpr llvm::StringLiteral kLibdevicePrefix = "__nv_";

/// Replaces ops that are no machine instructions by calls of library functions,
/// on scalars of f32 and f64; a math op it cannot replace is an error.
std::unique_ptr<mlir::Pass> createConvertMathToLibraryPass(
    FunctionSource source = FunctionSource::CLibrary);

} // namespace tcc::cpu

#endif // TCC_COMPILER_CODEGEN_CPU_OBJECT_LIBRARY_H
