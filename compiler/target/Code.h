//===- Code.h - The code of a target's kernels ------------------*- C++ -*-===//
#ifndef TCC_COMPILER_TARGET_CODE_H
#define TCC_COMPILER_TARGET_CODE_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Support/LLVM.h"
#include <string>
#include <vector>

namespace tcc {

enum class Artifact; // tcc/compiler.h

/// The code of one kind of machine, as in a package.
struct CodeVariant {
  /// What runs it: the name of a target, or `emulated`.
  std::string target;
  /// The CPU or the architecture that it is for, and the CPU's features that
  /// it uses.
  std::string machine;
  std::vector<std::string> features = {};
  std::vector<char> bytes = {};
  /// The offset of each kernel of the module, in its order: see
  /// Variant.kernel_offsets of Program.fbs.
  std::vector<uint64_t> offsets = {};
};

/// Emits code for the machines that a compilation was asked for. Errors go to
/// the context's diagnostics. The code does not depend on the number of `jobs`,
/// threads that compile.
class CodeEmitter {
public:
  virtual ~CodeEmitter() = default;

  /// Code of the target's kernels in `module`, for each of the machines.
  /// `notes` gets what is worth knowing for the user.
  virtual mlir::FailureOr<std::vector<CodeVariant>>
  emit(mlir::ModuleOp module, int jobs, std::vector<std::string> &notes) = 0;

  /// The same as text, for the first machine: Artifact::Kernels, Assembly or
  /// Ptx. An artifact that the target does not have is empty.
  virtual mlir::FailureOr<std::string> print(mlir::ModuleOp module, int jobs,
                                             Artifact artifact) = 0;
};

} // namespace tcc

#endif // TCC_COMPILER_TARGET_CODE_H
