//===- Traffic.h - The bytes that a kernel moves ----------------*- C++ -*-===//
#ifndef TCC_COMPILER_CODEGEN_REGION_TRAFFIC_H
#define TCC_COMPILER_CODEGEN_REGION_TRAFFIC_H

#include "dialects/graph/GraphOps.h"

namespace tcc::codegen {

/// What the kernel of `fused` writes, and what it reads of its inputs: of one
/// that is read through slices or gathers no more than those give; of one that
/// a scatter changes in place the elements that are changed.
mlir::AffineExpr getTraffic(graph::FusedOp fused,
                            llvm::ArrayRef<graph::SymbolAttr> symbols);

} // namespace tcc::codegen

#endif // TCC_COMPILER_CODEGEN_REGION_TRAFFIC_H
