//===- Ops.h - The table of ONNX operators ----------------------*- C++ -*-===//
#ifndef TCC_FRONTENDS_ONNX_OPS_H
#define TCC_FRONTENDS_ONNX_OPS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace tcc::plugin {
struct Operator;
}

namespace tcc::onnx_import {

class Node;

/// How to import one operator. It emits the op's computation and sets the
/// node's results, or fails the node.
struct OpRow {
  llvm::StringLiteral name;
  /// The versions of the operator set it is valid in, inclusive: from the first
  /// whose schema means what that of version 7 does, or a later one.
  int64_t since, until;
  void (*import)(Node &node);
  llvm::StringLiteral domain = "";
  /// It takes tensors of a NarrowType, decoded: where all it asks for is their
  /// value.
  bool readsNarrow = false;
};

constexpr int64_t kFirstOpset = 1, kLastOpset = 28;
/// The domain of what onnxruntime's graph optimiser writes, version 1.
constexpr llvm::StringLiteral kOrtDomain = "com.microsoft";
/// The domain of its blocked layouts, which only its level "all" writes.
constexpr llvm::StringLiteral kOrtBlockedDomain = "com.microsoft.nchwc";

/// The row of an operator; null if there is none.
const OpRow *findOp(llvm::StringRef domain, llvm::StringRef name,
                    int64_t version);

/// Imports a node whose operator is of a plugin.
void importCustom(const plugin::Operator &op, Node &node);

// One table a family.
llvm::ArrayRef<OpRow> getPointwiseOps();
llvm::ArrayRef<OpRow> getCastOps();
llvm::ArrayRef<OpRow> getReductionOps();
llvm::ArrayRef<OpRow> getCompactionOps();
llvm::ArrayRef<OpRow> getContractionOps();
llvm::ArrayRef<OpRow> getConvolutionOps();
llvm::ArrayRef<OpRow> getPoolingOps();
llvm::ArrayRef<OpRow> getNormalizationOps();
llvm::ArrayRef<OpRow> getFusedNormalizationOps();
llvm::ArrayRef<OpRow> getMovementOps();
llvm::ArrayRef<OpRow> getShapeOps();
llvm::ArrayRef<OpRow> getRearrangementOps();
llvm::ArrayRef<OpRow> getResizeOps();
llvm::ArrayRef<OpRow> getIndexingOps();
llvm::ArrayRef<OpRow> getRandomOps();
llvm::ArrayRef<OpRow> getControlOps();
llvm::ArrayRef<OpRow> getSequenceOps();
llvm::ArrayRef<OpRow> getRecurrentOps();
llvm::ArrayRef<OpRow> getQuantizationOps();
llvm::ArrayRef<OpRow> getQuantizedFormOps();
llvm::ArrayRef<OpRow> getLossOps();
llvm::ArrayRef<OpRow> getSignalOps();
llvm::ArrayRef<OpRow> getSamplingOps();
llvm::ArrayRef<OpRow> getRegionOps();
llvm::ArrayRef<OpRow> getAttentionOps();
llvm::ArrayRef<OpRow> getDecodingOps();
llvm::ArrayRef<OpRow> getNgramOps();

} // namespace tcc::onnx_import

#endif // TCC_FRONTENDS_ONNX_OPS_H
