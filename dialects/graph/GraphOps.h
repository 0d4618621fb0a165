//===- GraphOps.h - The ops of the graph dialect ----------------*- C++ -*-===//
#ifndef TCC_DIALECTS_GRAPH_GRAPHOPS_H
#define TCC_DIALECTS_GRAPH_GRAPHOPS_H

#include "dialects/graph/GraphDialect.h"
#include "dialects/graph/Panels.h"
#include "dialects/graph/Shape.h"
#include "dialects/graph/interfaces/ElementSource.h"
#include "dialects/graph/interfaces/Gradients.h"
#include "dialects/graph/interfaces/Permute.h"
#include "dialects/graph/interfaces/Product.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Utils/StructuredOpsUtils.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace tcc::graph {
/// The extents of the loops of `op`, an IterationOpInterface, that index an
/// operand or result directly; 1 for others.
Extents deriveLoopExtents(mlir::Operation *op);

/// The reduced loops of an op whose loops are the axes of its first operand;
/// nullopt for other ops.
std::optional<llvm::SmallVector<int64_t>> getReducedAxes(mlir::Operation *op);

/// True for such an op with one result element a row, combined from all of it:
/// a reduction. A composite like softmax has one for each element of the row.
bool isOnePerRow(mlir::Operation *op);
} // namespace tcc::graph

#include "dialects/graph/GraphInterfaces.h.inc"

namespace tcc::graph {
/// Whether attention of matrices with so many columns has a kernel on tensor
/// cores if they are of 16 bits: a row of each is in registers.
bool fitsTensorCores(llvm::ArrayRef<mlir::AffineExpr> columns);
/// The same of the matrices of `op`, whatever their types are.
bool fitsTensorCores(AttentionOpInterface op);
/// Whether `op` has such a kernel.
bool takesTensorCores(AttentionOpInterface op);
} // namespace tcc::graph

namespace mlir::OpTrait {
/// See Graph_ReadsIndices.
template <typename Op>
class ReadsIndices : public TraitBase<Op, ReadsIndices> {};

/// See Graph_IsCollective.
template <typename Op>
class IsCollective : public TraitBase<Op, IsCollective> {};
} // namespace mlir::OpTrait

#define GET_OP_CLASSES
#include "dialects/graph/Structure.h.inc"
#define GET_OP_CLASSES
#include "dialects/graph/Pointwise.h.inc"
#define GET_OP_CLASSES
#include "dialects/graph/Reduction.h.inc"
#define GET_OP_CLASSES
#include "dialects/graph/Contraction.h.inc"
#define GET_OP_CLASSES
#include "dialects/graph/Convolution.h.inc"
#define GET_OP_CLASSES
#include "dialects/graph/Normalization.h.inc"
#define GET_OP_CLASSES
#include "dialects/graph/Attention.h.inc"
#define GET_OP_CLASSES
#include "dialects/graph/Movement.h.inc"
#define GET_OP_CLASSES
#include "dialects/graph/Indexing.h.inc"
#define GET_OP_CLASSES
#include "dialects/graph/Random.h.inc"
#define GET_OP_CLASSES
#include "dialects/graph/Control.h.inc"
#define GET_OP_CLASSES
#include "dialects/graph/Collective.h.inc"
#define GET_OP_CLASSES
#include "dialects/graph/Custom.h.inc"

#endif // TCC_DIALECTS_GRAPH_GRAPHOPS_H
