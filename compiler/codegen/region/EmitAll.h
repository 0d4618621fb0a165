//===- EmitAll.h - Many kernels at once -------------------------*- C++ -*-===//
#ifndef TCC_COMPILER_CODEGEN_REGION_EMITALL_H
#define TCC_COMPILER_CODEGEN_REGION_EMITALL_H

#include "compiler/target/Target.h"

#include <atomic>
#include <thread>

namespace tcc::codegen {

using Kernels = llvm::SmallVector<exec::KernelOp>;

/// The kernels of `module` that run on `target`, in order.
Kernels getKernels(mlir::ModuleOp module, const Target &target);

/// The loops of all `kernels`, as text.
mlir::FailureOr<std::string> printLoops(llvm::ArrayRef<exec::KernelOp> kernels,
                                        const KernelOptions &options);

/// Makes results[i] of inputs[i]; `jobs` threads take the next one until all
/// are done.
template <typename T, typename Input, typename Make>
mlir::FailureOr<std::vector<T>> makeAll(const Input &inputs, int jobs,
                                        Make make) {
  std::vector<T> results(inputs.size());
  std::atomic<size_t> next = 0;
  std::atomic<bool> ok = true;
  auto work = [&] {
    for (size_t i; ok && (i = next++) < inputs.size();) {
      mlir::FailureOr<T> result = make(inputs[i]);
      if (mlir::failed(result))
        ok = false;
      else
        results[i] = std::move(*result);
    }
  };
  std::vector<std::jthread> threads;
  for (int i = 1; i < jobs; ++i)
    threads.emplace_back(work);
  work();
  threads.clear();
  if (!ok)
    return mlir::failure();
  return results;
}

} // namespace tcc::codegen

#endif // TCC_COMPILER_CODEGEN_REGION_EMITALL_H
