//===- Einsum.h - Sums of products ------------------------------*- C++ -*-===//
#ifndef TCC_FRONTENDS_EINSUM_H
#define TCC_FRONTENDS_EINSUM_H

#include "frontends/Emitter.h"

namespace tcc {

/// The result of an equation such as "bij,bjk->bik" as matrix products; null
/// after failing.
mlir::Value emitEinsum(Emitter &emitter, std::string equation,
                       llvm::ArrayRef<mlir::Value> operands);

} // namespace tcc

#endif // TCC_FRONTENDS_EINSUM_H
