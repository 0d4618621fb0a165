//===- Code.h - The code of a target's kernels ------------------*- C++ -*-===//
#ifndef TCC_COMPILER_TARGET_CODE_H
#define TCC_COMPILER_TARGET_CODE_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Support/LLVM.h"
#include <string>
#include <vector>

namespace tcc {

enum class Artifact; // tcc/compiler.h

namespace codegen {
class CodeCache;
} // namespace codegen

/// What code is made with, and does not depend on.
struct EmitResources {
  int jobs = 1;                        ///< threads that compile
  codegen::CodeCache *cache = nullptr; ///< the code that was made before
};

/// The code of one kind of machine, as in a package.
struct CodeVariant {
  /// What runs it: the name of a target, or `emulated`.
  std::string target;
  /// The CPU or the architecture that it is for.
  std::string machine;
  /// The CPU's features that it uses, as LLVM names them, sorted.
  std::vector<std::string> features = {};
  std::vector<char> bytes = {};
  /// Where each kernel of the module begins in `bytes`, in the module's order:
  /// see Variant.kernel_offsets of Program.fbs.
  std::vector<uint64_t> offsets = {};
  /// The positions in the module of the kernels that it has, of finished code;
  /// empty: those of the target whose code is not finished.
  std::vector<uint32_t> kernels = {};
};

/// Emits code for the machines that a compilation was asked for. Errors go to
/// the context's diagnostics.
class CodeEmitter {
public:
  virtual ~CodeEmitter() = default;

  /// The names of the machines, as they were asked for or by default.
  virtual const std::vector<std::string> &getMachines() const = 0;

  /// Code of the target's kernels in `module`, for each of the machines.
  /// `notes` gets what is worth knowing for the user.
  virtual mlir::FailureOr<std::vector<CodeVariant>>
  emit(mlir::ModuleOp module, const EmitResources &resources,
       std::vector<std::string> &notes) = 0;

  /// The same as text, for the first machine: Artifact::Kernels, Assembly or
  /// Ptx. An artifact that the target does not have is empty.
  virtual mlir::FailureOr<std::string> print(mlir::ModuleOp module,
                                             const EmitResources &resources,
                                             Artifact artifact) = 0;
};

} // namespace tcc

#endif // TCC_COMPILER_TARGET_CODE_H
