//===- Panels.h - Right operands of products as tiles read them -*- C++ -*-===//
#ifndef TCC_DIALECTS_GRAPH_PANELS_H
#define TCC_DIALECTS_GRAPH_PANELS_H

#include <cstdint>

namespace mlir {
class Type;
} // namespace mlir

namespace tcc::graph {

/// The most columns of a panel of a packed right operand: what a tile of a
/// product on a CPU has.
inline constexpr int64_t kPanelColumns = 64;

/// How panels hold rows of k: `group` neighbours of a column lie side by side,
/// [ceil(k / group)][columns][group], as one instruction multiplies them.
struct Packing {
  int64_t group = 1;

  /// `k` rows and the zeros that fill up their last group.
  int64_t getDepth(int64_t k) const { return (k + group - 1) / group * group; }
  /// The place of row k and column j in a panel of so many columns.
  int64_t getPlace(int64_t k, int64_t j, int64_t columns) const {
    return (k / group * columns + j) * group + k % group;
  }
  bool operator==(const Packing &) const = default;
};

/// How elements of a type are packed where rows may be filled up.
Packing getPacking(mlir::Type elementType);

} // namespace tcc::graph

#endif // TCC_DIALECTS_GRAPH_PANELS_H
