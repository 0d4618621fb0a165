//===- Attention.h - What attention computes --------------------*- C++ -*-===//
#ifndef TCC_FRONTENDS_ONNX_ATTENTION_H
#define TCC_FRONTENDS_ONNX_ATTENTION_H

#include "frontends/Attention.h"
#include "frontends/onnx/Node.h"

namespace tcc::onnx_import {

/// Sets the bias of an Attention node: its float mask, and -inf where
/// causality, the window, the padding or a boolean mask hide a key. `past` is
/// the key's part from earlier calls, or null.
void setBias(Node &node, Attention &attention, mlir::Value past);

/// [batch, length, heads * features] as [batch, heads, length, features].
mlir::Value splitHeads(Node &node, mlir::Value x, int64_t heads);
/// The inverse of splitHeads.
mlir::Value joinHeads(Node &node, mlir::Value x);

/// past and x, [batch, heads, length, features], one after the other; past may
/// be null.
mlir::Value appendTo(Node &node, mlir::Value past, mlir::Value x);

/// All of it, with softcap where it has one.
mlir::Value emitCapped(Node &node, const Attention &attention);

/// How the pairs of a head's first `features`, or of all where it is 0, are
/// turned: by `cosine` and `sine`, the inputs of that number, at `positions`,
/// [batch, length]; without them the inputs have an entry a position. A pair is
/// two neighbours if interleaved, or else an element of the first half and its
/// like of the second.
struct Rotation {
  int64_t cosine, sine;
  mlir::Value positions;
  bool isInterleaved = false;
  int64_t features = 0;
};
/// The rotary embedding of x [batch, heads, length, features], or with the
/// heads as axis 2.
mlir::Value rotate(Node &node, mlir::Value x, int64_t headAxis,
                   const Rotation &rotation);

/// The operators of onnxruntime, Attention, GroupQueryAttention, QAttention and
/// MultiHeadAttention.
void importGroupQueryAttention(Node &node);
void importPackedAttention(Node &node);
void importQuantizedAttention(Node &node);
void importMultiHeadAttention(Node &node);

} // namespace tcc::onnx_import

#endif // TCC_FRONTENDS_ONNX_ATTENTION_H
