//===- DescribeProduct.h - Kernels that cuBLASLt has ------------*- C++ -*-===//
#ifndef TCC_COMPILER_CODEGEN_CUDA_DESCRIBEPRODUCT_H
#define TCC_COMPILER_CODEGEN_CUDA_DESCRIBEPRODUCT_H

#include "dialects/exec/ExecDialect.h"
#include "dialects/graph/GraphOps.h"

namespace tcc::cuda {

/// What the kernel of `region` computes, as a library of matrix products knows
/// it; null if that has no such product.
exec::ProductAttr describeProduct(graph::FusedOp region);

} // namespace tcc::cuda

#endif // TCC_COMPILER_CODEGEN_CUDA_DESCRIBEPRODUCT_H
