//===- CompiledKernel.h - Compiles a region into this process ---*- C++ -*-===//
#ifndef TCC_TESTS_COMPILER_CODEGEN_CPU_KERNELS_COMPILEDKERNEL_H
#define TCC_TESTS_COMPILER_CODEGEN_CPU_KERNELS_COMPILEDKERNEL_H

#include "compiler/target/Kernel.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "runtime/package/Image.h"
#include "llvm/Support/Error.h"

namespace tcc {

/// Loads the dialects that regions are written in and compiled through.
void loadKernelDialects(mlir::MLIRContext &context);

/// Moves the graph ops of `function` into one region.
graph::FusedOp fuse(mlir::func::FuncOp function, graph::KernelKind kind);

/// A kernel as the compiler makes it, and as the runtime maps and calls it.
class CompiledKernel {
public:
  /// `cpu` as --cpu names it.
  static llvm::Expected<CompiledKernel> compile(graph::FusedOp region,
                                                llvm::StringRef cpu);

  /// Runs all tasks, `tasksPerCall` a call, the last ones first. `buffers` are
  /// inputs, results and the fault buffer; `symbols` the values of all symbols.
  void run(llvm::ArrayRef<void *> buffers, llvm::ArrayRef<int64_t> symbols,
           int64_t tasksPerCall = int64_t(1) << 40) const;

  const KernelInfo &getInfo() const { return info; }

private:
  struct Free {
    void operator()(void *memory) const { free(memory); }
  };

  CompiledKernel(runtime::CodeImage image, uint64_t offset, KernelInfo info);

  runtime::CodeImage image;
  format::KernelFunction function;
  KernelInfo info;
  std::unique_ptr<void, Free> scratch;
};

} // namespace tcc

#endif // TCC_TESTS_COMPILER_CODEGEN_CPU_KERNELS_COMPILEDKERNEL_H
