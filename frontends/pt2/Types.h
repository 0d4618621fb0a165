//===- Types.h - Element types as exported programs number them -*- C++ -*-===//
#ifndef TCC_FRONTENDS_PT2_TYPES_H
#define TCC_FRONTENDS_PT2_TYPES_H

#include "mlir/IR/Types.h"
#include <optional>

namespace tcc::pt2 {

/// PyTorch's number of the element type that the schema calls `number`; nullopt
/// if there is none.
std::optional<int64_t> getScalarType(std::optional<int64_t> number);
/// The graph's element type; null if tcc has none.
mlir::Type getElementType(std::optional<int64_t> number,
                          mlir::MLIRContext *context);

} // namespace tcc::pt2

#endif // TCC_FRONTENDS_PT2_TYPES_H
