//===- Attention.h - What attention computes --------------------*- C++ -*-===//
#ifndef TCC_FRONTENDS_ONNX_ATTENTION_H
#define TCC_FRONTENDS_ONNX_ATTENTION_H

#include "frontends/onnx/Node.h"

namespace tcc::onnx_import {

/// What an attention node computes: softmax(query key^T * scale + bias) value,
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

/// Sets the bias of an Attention node: its float mask, and -inf where
/// causality, the window, the padding or a boolean mask hide a key. `past` is
/// the key's part from earlier calls, or null.
void setBias(Node &node, Attention &attention, mlir::Value past);

} // namespace tcc::onnx_import

#endif // TCC_FRONTENDS_ONNX_ATTENTION_H
