//===- Epilogue.h - What libraries do behind a product ----------*- C++ -*-===//
#ifndef TCC_COMPILER_PASSES_GRAPH_FUSION_EPILOGUE_H
#define TCC_COMPILER_PASSES_GRAPH_FUSION_EPILOGUE_H

#include "dialects/graph/GraphOps.h"
#include "runtime/package/Names.h"

#include <optional>

namespace tcc::fusion {

/// activation(scale * product + addends...), rounded at the end.
struct Epilogue {
  double scale = 1;
  llvm::SmallVector<mlir::Value, 2> addends; ///< as they are stored
  mlir::Operation *activation = nullptr;
  mlir::Value
      other; ///< what else the activation reads, as it is stored, or null
};

/// Whether a library does `op` behind some product. Nothing follows it there.
bool isActivation(mlir::Operation *op);
/// Whether a library does the activation `op` behind such a product.
bool isActivationOf(mlir::Operation *op, mlir::Operation *product);

/// The function of libraries that `op`, which may be null, computes: the one of
/// its name.
std::optional<format::StepKind> getFunction(mlir::Operation *op);

/// The most addends: a bias and another one.
inline constexpr size_t kMaxAddends = 2;

/// The operand of an activation that a product leads to.
mlir::Value getActivated(mlir::Operation *activation);

/// How `result` is computed from `product` and values of which `isInput` is
/// true; nullopt if no library does so. Reshapes are looked through: addends
/// have as many elements, or are broadcast.
std::optional<Epilogue>
matchEpilogue(mlir::Value result, mlir::Value product,
              llvm::function_ref<bool(mlir::Value)> isInput);

/// Whether `value` is what the activation of the epilogue is of, as it is
/// stored.
bool isActivated(mlir::Value value, const Epilogue &epilogue);

} // namespace tcc::fusion

#endif // TCC_COMPILER_PASSES_GRAPH_FUSION_EPILOGUE_H
