//===- SizeExpr.h - Arithmetic on size slots --------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_PACKAGE_SIZEEXPR_H
#define TCC_RUNTIME_PACKAGE_SIZEEXPR_H

#include "runtime/package/Program_generated.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace tcc::runtime {

/// The deepest stack that a verified expression needs.
inline constexpr size_t kMaxSizeDepth = 16;

/// Whether the code leaves one value, never pops from an empty stack, and
/// reads only slots below `slotCount`.
bool isWellFormed(const format::SizeExpr &expr, size_t slotCount);

/// The value of a well-formed expression; false on overflow and on division by
/// zero.
[[nodiscard]] bool evaluate(const format::SizeExpr &expr, const int64_t *slots,
                            int64_t &value);

/// A number that every value of a well-formed expression is a multiple of,
/// whatever the slots are; 0 for an expression that is always 0.
uint64_t knownDivisor(const format::SizeExpr &expr);

/// The slot that an expression is, or -1 if it is another expression.
int64_t slotOf(const format::SizeExpr &expr);

/// Whether the expression reads slots below `slotCount` only.
bool readsOnlySlotsBelow(const format::SizeExpr &expr, size_t slotCount);

/// Whether it reads no slot but that one; none, if that is -1.
bool readsOnlySlot(const format::SizeExpr &expr, int64_t slot);

/// The extents of a tensor, if none of them is symbolic.
std::optional<std::vector<int64_t>>
staticShape(const format::TensorSpec &tensor);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_PACKAGE_SIZEEXPR_H
