//===- Attention.h - What attention computes --------------------*- C++ -*-===//
#ifndef TCC_FRONTENDS_ATTENTION_H
#define TCC_FRONTENDS_ATTENTION_H

#include "frontends/Emitter.h"

namespace tcc {

/// What attention computes: softmax(query key^T * scale + bias) value,
/// where `group` heads of the query share one of key and value.
struct Attention {
  mlir::Value query;      // [batch, heads, rows, features]
  mlir::Value key, value; // [batch, heads / group, columns, features]
  mlir::Value bias; // broadcasts to [batch, heads, rows, columns]; may be null
  mlir::AffineExpr heads;
  int64_t group = 1;
  double scale = 1, softcap = 0;
  /// The element type of the softmax; null for the scores' own.
  mlir::Type precision;
  /// A row whose bias is all -inf gives zeros.
  bool isGuarded = false;

  mlir::AffineExpr getRows() const { return graph::getExtent(query, 2); }
  mlir::AffineExpr getColumns() const { return graph::getExtent(key, 2); }
};

/// Checks that query, key and value fit, and finds the group.
bool groupHeads(Emitter &emitter, Attention &attention);

/// [batch, heads, rows, n] with the heads of a group below each other:
/// [batch, heads / group, group * rows, n]. So a product reads key and value
/// once a group, without repeating them.
mlir::Value mergeGroup(Emitter &emitter, mlir::Value x, int64_t group);
/// The inverse of mergeGroup.
mlir::Value splitGroup(Emitter &emitter, const Attention &attention,
                       mlir::Value x);
/// The bias with all its rows and columns, its groups merged.
mlir::Value arrangeBias(Emitter &emitter, const Attention &attention);
/// All of it as one op, without softcap and in the scores' own precision.
mlir::Value emitAttention(Emitter &emitter, const Attention &attention);

} // namespace tcc

#endif // TCC_FRONTENDS_ATTENTION_H
