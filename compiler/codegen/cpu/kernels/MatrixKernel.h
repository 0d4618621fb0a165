//===- MatrixKernel.h - Operands and results of matrix kernels --*- C++ -*-===//
//
// How operands of products and of attention reach the generators of matrix
// kernels, and how their sums go through the rest of the region into the
// results.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_CODEGEN_CPU_KERNELS_MATRIXKERNEL_H
#define TCC_COMPILER_CODEGEN_CPU_KERNELS_MATRIXKERNEL_H

#include "compiler/codegen/cpu/kernels/KernelEmitter.h"
#include "compiler/codegen/cpu/tile/Packing.h"
#include "compiler/codegen/region/Sums.h"
#include "dialects/graph/Strides.h"

namespace tcc::cpu {

VectorUnit getVectorUnit(const KernelOptions &options);

/// The buffer of an input of the region.
Memory getMemory(KernelFrame &frame, Value input);

/// How a contraction gets one of its operands.
struct MatrixAccess {
  enum Kind {
    Panels,
    InPlace,
    Rows,
    Columns,
    Windows,
    Elements
  } kind = Elements;
  mlir::Type elementType; // in memory, or of computed elements
  Value input;
  mlir::AffineExpr laneStride, kStride;
  bool isUnsigned = false;
  Packing packing = {}; // with a group, elementType is a unit (PackedUnit.h)

  /// Takes the operand in units, if it need not be read where it lies in
  /// another order.
  void setPacking(Packing packing);
  /// Null where nothing is packed.
  mlir::Type getPackedType() const {
    return kind == Panels || kind == InPlace ? mlir::Type() : elementType;
  }
};

/// One operand: the batch axes are those but lane and k, [batch..., lane, k] or
/// another order.
struct MatrixSide {
  Value tensor;
  int64_t laneAxis, kAxis, batchRank;
};

/// How packing reads a matrix in memory, by its strides: as Rows, as Columns
/// or, if neither is 1, as Elements.
MatrixAccess::Kind getPackedKind(const MatrixAccess &access);

/// The type in which elements of `tensor` are computed.
mlir::Type getComputedType(Value tensor);

/// Where it lies, and how packing reads it.
MatrixAccess traceAccess(const MatrixSide &side);

/// Where an access finds its elements.
struct MatrixSource {
  std::function<Value(KernelBuilder &, Value batch)> offset;
  Value panelStride; // of panels
  ElementFunction element;
  /// Rows of k, where Columns may not fill the last unit.
  Value rows = {};
};

/// The source of a side but for panels; `indices` gives those of its batch
/// axes.
using BatchIndices =
    std::function<llvm::SmallVector<Value>(KernelBuilder &, Value batch)>;
MatrixSource makeSource(KernelFrame &frame, const MatrixSide &side,
                        BatchIndices indices);

MatrixOperand makeOperand(KernelFrame &frame, const MatrixAccess &access,
                          const MatrixSource &source, int64_t width);

/// Computes the units of elements.
ElementFunction makeUnits(ElementFunction element, Packing packing);

/// Passes the element of the kernel's op through the region to the results.
void emitResults(KernelBuilder &b, KernelFrame &frame, Value sum,
                 ValueRange indices);

/// Fetches what emitResults reads and writes at `indices` and for so many
/// elements from there on.
void prefetchResults(KernelBuilder &b, KernelFrame &frame, ValueRange indices,
                     int64_t count);

/// The indices of sum (batch, i, j) in the result of the kernel's op.
using ResultIndices = std::function<llvm::SmallVector<Value>(
    KernelBuilder &, Value batch, Value i, Value j)>;

/// Lets the contraction pass its sums through the region to the results.
void addResults(Contraction &contraction, KernelFrame &frame,
                ResultIndices indices);

/// The blocks of a product of known or unknown sizes, as kPlanAttr of `region`
/// has them: `blocking`, the most rows, columns and k of each.
class BlockChoice {
public:
  BlockChoice() = default;
  /// `blocking`, which was chosen for `sizes`, or what the attribute has of it.
  BlockChoice(graph::FusedOp region, const Blocking &blocking,
              const ContractionSizes &sizes);

  /// Adds the choice and what may be chosen instead to `plan`; an error if the
  /// attribute's is not possible.
  mlir::FailureOr<TaskPlan> describe(TaskPlan plan) const;

  /// Whether the attribute says what to choose.
  bool isGiven() const { return given; }
  const Blocking *operator->() const { return &blocking; }
  const Blocking &operator*() const { return blocking; }

private:
  graph::FusedOp region;
  Blocking chosen, blocking; // without the attribute, and with it
  ContractionSizes sizes;
  bool given = false, isPossible = true;
};

} // namespace tcc::cpu

#endif // TCC_COMPILER_CODEGEN_CPU_KERNELS_MATRIXKERNEL_H
