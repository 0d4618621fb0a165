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

/// The operators of onnxruntime, Attention, QAttention and MultiHeadAttention.
void importPackedAttention(Node &node);
void importQuantizedAttention(Node &node);
void importMultiHeadAttention(Node &node);

} // namespace tcc::onnx_import

#endif // TCC_FRONTENDS_ONNX_ATTENTION_H
