//===- Constants.h - The tensors of the const section -----------*- C++ -*-===//
#ifndef TCC_COMPILER_PACKAGE_CONSTANTS_H
#define TCC_COMPILER_PACKAGE_CONSTANTS_H

#include "compiler/package/ProgramBuilder.h"
#include "frontends/WeightStore.h"
#include "runtime/package/Writer.h"

namespace tcc::package {

/// The tensors that replacement files may name: first the inputs of
/// `prepare`, in their order, then the rest of the store.
std::vector<ModelTensorInfo> listModelTensors(mlir::ModuleOp module,
                                              const WeightStore &weights);

/// Which model tensors each exec.constant is computed from by `prepare`.
std::vector<std::vector<uint32_t>> findSources(mlir::ModuleOp module);

/// The most bytes that the launches of a run move which read each
/// exec.constant; the size of those that another command reads.
std::vector<uint64_t> countReadBytes(mlir::ModuleOp module);

/// The bytes of all exec.constant ops: of a value, of the store, or memory that
/// `prepare` fills. Without weights only values have bytes: what is no tensor
/// of the model cannot be given later.
class ConstantBytes {
public:
  ConstantBytes(mlir::ModuleOp module, const WeightStore &weights,
                bool withWeights);

  /// One per exec.constant: what `prepare` reads, and memory for what it
  /// writes.
  std::vector<void *> getPointers();
  /// Adds digests to `places`, once all bytes are there.
  std::vector<runtime::WeightData>
  layOut(std::vector<ConstPlace> &places) const;
  /// Offsets and sizes only.
  std::vector<ConstPlace> getPlaces() const;

private:
  struct Constant {
    uint64_t size = 0;
    std::span<const std::byte> bytes; // of value or store
    std::vector<std::byte> owned;     // of a value, or for prepare
    bool isPrepared = false;
    bool isLeftOut = false;

    std::span<const std::byte> get() const {
      return owned.empty() ? bytes : std::span<const std::byte>(owned);
    }
  };

  std::vector<Constant> constants;
};

} // namespace tcc::package

#endif // TCC_COMPILER_PACKAGE_CONSTANTS_H
