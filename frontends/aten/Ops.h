//===- Ops.h - The table of PyTorch's operators -----------------*- C++ -*-===//
#ifndef TCC_FRONTENDS_ATEN_OPS_H
#define TCC_FRONTENDS_ATEN_OPS_H

#include "frontends/aten/Schema.h"

namespace tcc::aten {

class Call;

/// How to import one overload. It emits the computation and sets the call's
/// results, or fails the call.
struct OpRow {
  llvm::StringLiteral schema;
  void (*import)(Call &call);
};

struct Overload {
  const OpRow *row;
  Schema schema;
};

/// The overloads of an operator that is not in place; empty if there are none.
llvm::ArrayRef<Overload> findOverloads(llvm::StringRef name);

// One table a family.
llvm::ArrayRef<OpRow> getPointwiseOps();
llvm::ArrayRef<OpRow> getActivationOps();
llvm::ArrayRef<OpRow> getReductionOps();
llvm::ArrayRef<OpRow> getContractionOps();
llvm::ArrayRef<OpRow> getConvolutionOps();
llvm::ArrayRef<OpRow> getPoolingOps();
llvm::ArrayRef<OpRow> getNormalizationOps();
llvm::ArrayRef<OpRow> getAttentionOps();
llvm::ArrayRef<OpRow> getShapeOps();
llvm::ArrayRef<OpRow> getMovementOps();
llvm::ArrayRef<OpRow> getCreationOps();
llvm::ArrayRef<OpRow> getIndexingOps();
llvm::ArrayRef<OpRow> getRandomOps();
llvm::ArrayRef<OpRow> getRecurrentOps();

} // namespace tcc::aten

#endif // TCC_FRONTENDS_ATEN_OPS_H
