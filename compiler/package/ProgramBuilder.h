//===- ProgramBuilder.h - The exec module as a FlatBuffer -------*- C++ -*-===//
//
// Walks a module of the exec dialect and writes Program.fbs op by op. What the
// module does not know (where the tensors of the const section lie, the code of
// the variants) comes beside it.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_PACKAGE_PROGRAMBUILDER_H
#define TCC_COMPILER_PACKAGE_PROGRAMBUILDER_H

#include "mlir/IR/BuiltinOps.h"
#include "runtime/package/Format.h"
#include <optional>
#include <string>
#include <vector>

namespace tcc::package {

/// Where a tensor of the const section lies, in the order of exec.constant ops.
struct ConstPlace {
  uint64_t offset = 0;
  uint64_t bytes = 0;
  /// The digest of the bytes, if the package has them.
  std::optional<format::Digest> digest = {};
  /// Positions in `ProgramParts::modelTensors` it is computed from.
  std::vector<uint32_t> sources;
  /// A run reads few of the bytes.
  bool isSparse = false;
};

/// A tensor of the model as replacement files name it.
struct ModelTensorInfo {
  std::string name;
  mlir::RankedTensorType type;
  /// Position among the exec.constant ops if it is stored unchanged, else -1.
  int32_t constIndex = -1;
  bool isStructural = false;
  format::Digest digest = {}; // of a structural one
};

/// The code of one CPU or kind of device, as Variant in Program.fbs.
struct VariantInfo {
  std::string target;
  std::string cpu;
  std::vector<std::string> features;
  uint32_t imageSection = 0;
  std::vector<uint64_t> kernelOffsets; // of the exec.kernel ops
  std::vector<uint32_t> kernels;       // that it names; empty: none
};

struct ProgramParts {
  std::vector<ConstPlace> constants;
  std::vector<ModelTensorInfo> modelTensors; // inputs of prepare first
  std::vector<VariantInfo> variants;
  std::vector<std::pair<std::string, std::string>> metadata;
  int64_t memoryBudget = 0; // of what is planned; 0: any
};

/// The bytes of the Program. The module holds exec ops only and its memory is
/// planned; the same input gives the same bytes.
std::vector<std::byte> buildProgram(mlir::ModuleOp module,
                                    const ProgramParts &parts);

} // namespace tcc::package

#endif // TCC_COMPILER_PACKAGE_PROGRAMBUILDER_H
