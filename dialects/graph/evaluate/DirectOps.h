//===- DirectOps.h - Ops that are evaluated by their own loops --*- C++ -*-===//
//
// Contractions, windows, scans and irregular ops: their meaning written down as
// plainly as their documentation.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_DIALECTS_GRAPH_EVALUATE_DIRECTOPS_H
#define TCC_DIALECTS_GRAPH_EVALUATE_DIRECTOPS_H

#include "dialects/graph/GraphOps.h"
#include "dialects/graph/evaluate/HostTensor.h"

namespace tcc {

/// `result` comes with its type and its elements allocated.
void evaluate(graph::MatmulOp op, const HostTensor &lhs, const HostTensor &rhs,
              HostTensor &result);
void evaluate(graph::MatmulSumsOp op, const HostTensor &lhs,
              const HostTensor &rhs, HostTensor &result, HostTensor &sums);
void evaluate(graph::ConvOp op, const HostTensor &x, const HostTensor &filter,
              HostTensor &result);
void evaluate(graph::PoolOp op, const HostTensor &x, HostTensor &result);
void evaluate(graph::ArgReduceOp op, const HostTensor &x, HostTensor &result);
void evaluate(graph::CumulativeOp op, const HostTensor &x, HostTensor &result);
void evaluate(graph::TopKOp op, const HostTensor &x, HostTensor &resultValues,
              HostTensor &resultIndices);
void evaluate(graph::FindOp op, const HostTensor &x, HostTensor &result);
void evaluate(graph::ChooseBoxesOp op,
              llvm::ArrayRef<const HostTensor *> operands, HostTensor &result);
llvm::Error evaluate(graph::ScatterElementsOp op, const HostTensor &x,
                     const HostTensor &indices, const HostTensor &updates,
                     HostTensor &result);
llvm::Error evaluate(graph::ScatterNdOp op, const HostTensor &x,
                     const HostTensor &indices, const HostTensor &updates,
                     HostTensor &result);

/// Scalar multiplications and comparisons that one result element takes.
int64_t getWorkPerElement(mlir::Operation *op,
                          llvm::ArrayRef<const HostTensor *> operands);

} // namespace tcc

#endif // TCC_DIALECTS_GRAPH_EVALUATE_DIRECTOPS_H
