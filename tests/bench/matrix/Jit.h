//===- Jit.h - Compiles one kernel function into this process ---*- C++ -*-===//
#ifndef TCC_TESTS_BENCH_MATRIX_JIT_H
#define TCC_TESTS_BENCH_MATRIX_JIT_H

#include "mlir/IR/BuiltinOps.h"
#include <memory>
#include <string>

namespace llvm::orc {
class LLJIT;
}

namespace tcc::bench {

/// The dialects that kernels are written in, with their translations.
void registerKernelDialects(mlir::DialectRegistry &registry);

/// Machine code of a module of kernel functions, for the CPU `cpu`.
class Jit {
public:
  /// Prints why and returns null where the module cannot be compiled.
  static std::unique_ptr<Jit> compile(mlir::ModuleOp module,
                                      const std::string &cpu);
  ~Jit();

  void *lookup(const std::string &name);
  /// The assembly of the module.
  const std::string &assembly() const { return text; }

private:
  std::unique_ptr<llvm::orc::LLJIT> jit;
  std::string text;
};

} // namespace tcc::bench

#endif // TCC_TESTS_BENCH_MATRIX_JIT_H
