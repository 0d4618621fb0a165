//===- Target.h - Where kernels run -----------------------------*- C++ -*-===//
//
// One object a target says all that passes ask of it: they never ask which one
// it is. A target is a folder with a class that is registered in Targets.cpp.
// A module is compiled for the target that its attribute graph.target names,
// for the host without one; its entry point `prepare` runs on the host always.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_TARGET_TARGET_H
#define TCC_COMPILER_TARGET_TARGET_H

#include "compiler/target/Code.h"
#include "compiler/target/Kernel.h"
#include "compiler/target/Machine.h"
#include "dialects/exec/ExecOps.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/Error.h"

namespace mlir {
class OpPassManager;
}

namespace tcc {

struct CompileOptions; // tcc/compiler.h

namespace cpu {
struct Cpu;
} // namespace cpu

/// Where a target's own passes over the graph dialect stand.
enum class TargetStage {
  Layout,   ///< of weights and products, once all ops are simplified
  Prepared, ///< after what depends on weights alone is split off
  Fusion,   ///< right before kernels are chosen
};

/// What a target can do.
struct TargetCapabilities {
  /// Kernels of attention multiply matrices of bf16.
  bool hasBf16Attention = false;
  /// Products read slices that are gathered for their batch where they lie.
  bool readsGatheredBatches = false;
  /// Attention and its gradients have kernels for matrices of 16 bits, on units
  /// for matrix products.
  bool hasTensorAttention = false;
  /// Libraries of matrix products, see Target::isOfLibrary.
  bool hasLibraries = false;
  /// Products of f32 that round what they read to tf32.
  bool hasTf32 = false;
  /// An element of a product is one chain of additions, whatever kernel
  /// computes it: it has the same bits in all.
  bool sumsInChains = false;
  /// Ranks add gradients up in one order, whatever their number.
  bool hasExactSums = false;
  /// The most bytes that an access of a kernel moves; 1: alignment of buffers
  /// does not count.
  int64_t accessBytes = 1;
  /// Bytes of gradients that ranks sum in one message, so many that what it
  /// takes by itself is a tenth of its time or less. Larger ones are hidden
  /// less, as the last is summed when nothing is left to compute.
  int64_t bucketBytes = 0;
};

class Target {
public:
  virtual ~Target() = default;

  /// The name in `--target`, in `exec.kernel` and in variants of packages.
  virtual llvm::StringRef getName() const = 0;
  /// Where buffers of its kernels lie.
  virtual exec::MemorySpace getSpace() const = 0;
  virtual const Machine &getMachine() const = 0;
  virtual const TargetCapabilities &getCapabilities() const = 0;

  /// The dialects and translations that its code is made with.
  virtual void registerDialects(mlir::DialectRegistry & /*registry*/) const {}

  virtual void addPasses(mlir::OpPassManager & /*pm*/,
                         TargetStage /*stage*/) const {}

  /// Up to which extent the loops of a kernel of the kind are a matter of its
  /// code. Longer ones are as fast where they are known only at a launch, if
  /// they walk along memory. Nullopt: all matter.
  virtual std::optional<int64_t>
  getFixedExtent(graph::KernelKind /*kind*/) const {
    return std::nullopt;
  }

  /// Whether it has kernels of the kind; ops of another are decomposed.
  virtual bool hasKernels(graph::KernelKind /*kind*/) const { return true; }

  /// Why `code` cannot be a part of what it emits, as the function of a kernel
  /// of `op` for this target, a line for each reason; empty if it can.
  virtual std::vector<std::string>
  checkCode(graph::ExternalKernelOpInterface /*op*/,
            graph::CustomCodeAttr /*code*/) const {
    return {};
  }

  /// Whether a library may compute `results`, from a product by `anchor` and
  /// from values of which `isInput` is true, in one call.
  virtual bool
  isOfLibrary(mlir::Operation * /*anchor*/,
              llvm::ArrayRef<mlir::Value> /*results*/,
              llvm::function_ref<bool(mlir::Value)> /*isInput*/) const {
    return false;
  }

  /// Describes the kernel of `fused`, which stands in a module with the
  /// symbols. It follows choices in kPlanAttr of `fused`. An error if the kind
  /// is not supported, or a choice not possible.
  virtual mlir::FailureOr<KernelInfo> plan(graph::FusedOp fused) const = 0;

  /// Bytes that the address of each buffer of a launch is a multiple of, inputs
  /// first; empty if code does not count on any.
  virtual llvm::SmallVector<int64_t>
  getAlignments(graph::FusedOp /*fused*/) const {
    return {};
  }

  /// Whether all that may compute `fused` reads each element of `input` before
  /// it writes that of `result` in its place, where the region allows that.
  virtual bool canOverwrite(graph::FusedOp /*fused*/, unsigned /*result*/,
                            unsigned /*input*/) const {
    return true;
  }

  /// A module with the loops of `fused`, as a function `name`; `fused` has the
  /// plan that `plan` made.
  virtual mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>>
  emit(graph::FusedOp fused, llvm::StringRef name,
       const KernelOptions &options) const = 0;

  /// Creates what emits code for the machines that `options` ask for, where
  /// `hosts`, at least one, are the CPUs. Keeps neither of them. The error
  /// names the option that cannot be had.
  virtual llvm::Expected<std::unique_ptr<CodeEmitter>>
  createEmitter(const CompileOptions &options,
                llvm::ArrayRef<cpu::Cpu> hosts) const = 0;

  bool hasDevice() const { return getSpace() == exec::MemorySpace::device; }
};

/// Makes `target` known, which lives as long as the process. Not thread-safe:
/// before anything is compiled.
void registerTarget(const Target &target);

/// All that are known, in the order in which they were registered.
llvm::ArrayRef<const Target *> getTargets();

/// The target of that name; null if there is none.
const Target *findTarget(llvm::StringRef name);

/// The CPU, for which every process that compiles has code.
const Target &getHostTarget();

/// The names of the targets for which `hasIt` is true, as "a or b".
std::string listTargets(llvm::function_ref<bool(const Target &)> hasIt =
                            [](const Target &) { return true; });

/// The target of `module`, which is registered: only text that was written by
/// hand, past tcc-set-target, has other names, which end the process.
const Target &getTarget(mlir::ModuleOp module);
void setTarget(mlir::ModuleOp module, const Target &target);

/// The target that `kernel`, or the kernels of `function`, run on.
const Target &getTarget(exec::KernelOp kernel);
void setTarget(exec::KernelOp kernel, const Target &target);
const Target &getTarget(mlir::func::FuncOp function);

} // namespace tcc

#endif // TCC_COMPILER_TARGET_TARGET_H
