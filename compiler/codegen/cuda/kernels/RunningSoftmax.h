//===- RunningSoftmax.h - Weights of scores that come in turn ---*- C++ -*-===//
//
// Weights are relative to the largest score so far: what was summed before a
// larger one came is scaled (Milakov, Gimelshein, "Online normalizer
// calculation for softmax", 2018).
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_CODEGEN_CUDA_KERNELS_RUNNINGSOFTMAX_H
#define TCC_COMPILER_CODEGEN_CUDA_KERNELS_RUNNINGSOFTMAX_H

#include "compiler/codegen/cuda/kernels/DeviceKernel.h"

namespace tcc::cuda {

/// Makes weights of the next scores of a row, of which `threads` neighbours (a
/// power of two, within a warp) have some each, and adds this thread's to
/// `total`. Of `largest` and `total` only the former is the whole row's.
/// Returns what the sums so far are to be scaled by.
Value emitRunningWeights(KernelBuilder &b, mlir::ArrayRef<Value *> scores,
                         int64_t threads, Value &largest, Value &total);

} // namespace tcc::cuda

#endif // TCC_COMPILER_CODEGEN_CUDA_KERNELS_RUNNINGSOFTMAX_H
