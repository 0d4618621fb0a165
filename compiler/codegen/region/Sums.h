//===- Sums.h - From the sums of a product into results ---------*- C++ -*-===//
//
// What becomes of an element of the op that decides a kernel's loops: it goes
// through the rest of the region and is stored as the results.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_CODEGEN_REGION_SUMS_H
#define TCC_COMPILER_CODEGEN_REGION_SUMS_H

#include "compiler/codegen/region/KernelBuilder.h"
#include "compiler/codegen/region/RegionFrame.h"

namespace tcc::codegen {

/// The type in which products of `elementType` are summed.
mlir::Type getSumType(mlir::Type elementType);

/// The type with an integer's bits alone, as arith has it.
mlir::Type getSignless(mlir::Type elementType);

/// The element of a result of the kernel's op is `sum`, rounded.
void defineSum(KernelBuilder &b, RegionFrame &frame, Value sum,
               ValueRange indices, unsigned result = 0);

/// What is stored as the result `yielded`: that, or what it moves.
Value getStored(RegionFrame &frame, Value yielded);

/// Stores a result's element of the loops' `indices`.
void storeResult(KernelBuilder &b, RegionFrame &frame, unsigned result,
                 ValueRange indices);

/// The place in the buffer of the result `yielded`, or of an input, of its
/// element at `at` of the loops.
Value findPlace(KernelBuilder &b, RegionFrame &frame, Value yielded,
                ValueRange at);

/// True if the region reads nothing between its op and its results that tells
/// axes [first, end) of the op's result apart: then any indices of one
/// row-major position serve.
bool readsPositionsOnly(graph::FusedOp region, int64_t first, int64_t end);

/// A builder of kernels where `b` stands.
KernelBuilder makeKernelBuilder(mlir::OpBuilder &b, mlir::Location loc);

/// The indices of `operand`'s batch axes where those of the result, of the
/// extents `batch`, are `at`: axes whose extents are part of these are
/// repeated.
llvm::SmallVector<Value> alignBatch(KernelBuilder &b, Value operand,
                                    const graph::Extents &batch, ValueRange at);

} // namespace tcc::codegen

#endif // TCC_COMPILER_CODEGEN_REGION_SUMS_H
