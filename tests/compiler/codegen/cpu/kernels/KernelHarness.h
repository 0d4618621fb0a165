//===- KernelHarness.h - Compares kernels with the reference ----*- C++ -*-===//
#ifndef TCC_TESTS_COMPILER_CODEGEN_CPU_KERNELS_KERNELHARNESS_H
#define TCC_TESTS_COMPILER_CODEGEN_CPU_KERNELS_KERNELHARNESS_H

#include "dialects/graph/evaluate/Evaluator.h"
#include "tests/compiler/codegen/cpu/kernels/CompiledKernel.h"
#include "gtest/gtest.h"

namespace tcc {

using Bytes = std::vector<char>;

/// What a kernel made of its inputs.
struct KernelRun {
  std::vector<Bytes> results;
  int64_t fault[2] = {0, 0};
};

/// A module with one function @f of graph ops, which become one region.
class KernelHarness : public testing::Test {
protected:
  KernelHarness();

  /// Takes the module and the values of its symbols; @f is kept as the
  /// reference, a copy of its ops put into the region.
  void parse(graph::KernelKind kind, const std::string &source,
             llvm::ArrayRef<int64_t> symbols = {});
  /// Compiles the region for the CPU named.
  void compile(llvm::StringRef cpu = "native");
  /// Inputs of the function's types, the same in each call: floats in [-2, 2),
  /// integers 0, 1 and 2.
  std::vector<HostTensor> makeInputs();
  KernelRun run(llvm::ArrayRef<HostTensor> inputs,
                int64_t tasksPerCall = int64_t(1) << 40);

  /// Checks the results of the region against the reference within `tolerance`
  /// of the largest one, also with NaN and infinities among the inputs, and
  /// that bits depend neither on how tasks are grouped nor on the CPU.
  void check(graph::KernelKind kind, const std::string &source,
             llvm::ArrayRef<int64_t> symbols = {}, double tolerance = 2e-6);

  /// Compares with the function parsed last.
  void compareWithReference(llvm::ArrayRef<HostTensor> inputs,
                            const KernelRun &run, double tolerance);

  mlir::func::FuncOp getFunction();
  graph::FusedOp getRegion() { return region; }
  const CompiledKernel &getKernel() { return *kernel; }

private:
  /// Whether code for `cpu` may multiply what the region reads by AMX.
  bool usesTileRegisters(llvm::StringRef cpu);
  std::vector<std::string> listCpus();
  mlir::RankedTensorType getRunType(mlir::Type type) const;

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  graph::FusedOp region;
  llvm::SmallVector<int64_t> symbols;
  std::optional<CompiledKernel> kernel;
};

} // namespace tcc

#endif // TCC_TESTS_COMPILER_CODEGEN_CPU_KERNELS_KERNELHARNESS_H
