/*===- tcc/op_cuda.h - CUDA C++ without CUDA's headers ----------*- C++ -*-===*/
/*
 * What kernels of plugins (tcc/op.h) are written with, where clang compiles
 * them alone:
 *
 *   clang++ -x cuda --cuda-device-only --cuda-gpu-arch=sm_80 -nocudainc \
 *     -nocudalib -emit-llvm -O3 -ffp-contract=off -c mine.cu -o mine.bc
 *
 * Under nvcc, and under clang with CUDA's headers, it adds nothing: the same
 * source compiles there. Functions are libdevice's, of CUDA's names; --emulate
 * takes those of a C library.
 */
#ifndef TCC_OP_CUDA_H
#define TCC_OP_CUDA_H

#include <stddef.h>
#include <stdint.h>

#if defined(__clang__) && defined(__CUDA__) &&                                 \
    !defined(__CLANG_CUDA_RUNTIME_WRAPPER_H__)

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __constant__ __attribute__((constant))
#define __shared__ __attribute__((shared))
#define __forceinline__ inline __attribute__((always_inline))

/* threadIdx, blockIdx, blockDim and gridDim; __syncthreads is clang's own. */
#include <__clang_cuda_builtin_vars.h>

#define TCC_OP_FUNCTION_1(NAME)                                                \
  extern "C" __device__ double __nv_##NAME(double);                            \
  extern "C" __device__ float __nv_##NAME##f(float);                           \
  static __device__ __forceinline__ double NAME(double x) {                    \
    return __nv_##NAME(x);                                                     \
  }                                                                            \
  static __device__ __forceinline__ float NAME##f(float x) {                   \
    return __nv_##NAME##f(x);                                                  \
  }
#define TCC_OP_FUNCTION_2(NAME)                                                \
  extern "C" __device__ double __nv_##NAME(double, double);                    \
  extern "C" __device__ float __nv_##NAME##f(float, float);                    \
  static __device__ __forceinline__ double NAME(double x, double y) {          \
    return __nv_##NAME(x, y);                                                  \
  }                                                                            \
  static __device__ __forceinline__ float NAME##f(float x, float y) {          \
    return __nv_##NAME##f(x, y);                                               \
  }

TCC_OP_FUNCTION_1(acos)
TCC_OP_FUNCTION_1(asin)
TCC_OP_FUNCTION_1(atan)
TCC_OP_FUNCTION_1(cosh)
TCC_OP_FUNCTION_1(erf)
TCC_OP_FUNCTION_1(erfc)
TCC_OP_FUNCTION_1(exp)
TCC_OP_FUNCTION_1(expm1)
TCC_OP_FUNCTION_1(fabs)
TCC_OP_FUNCTION_1(log)
TCC_OP_FUNCTION_1(log1p)
TCC_OP_FUNCTION_1(sinh)
TCC_OP_FUNCTION_1(sqrt)
TCC_OP_FUNCTION_1(tanh)
TCC_OP_FUNCTION_2(atan2)
TCC_OP_FUNCTION_2(fmax)
TCC_OP_FUNCTION_2(fmin)

#undef TCC_OP_FUNCTION_1
#undef TCC_OP_FUNCTION_2

/* The lanes of `mask` give `value` to the one whose number differs from theirs
 * in the bits of `lanes`. */
static __device__ __forceinline__ float
__shfl_xor_sync(unsigned mask, float value, int lanes) {
  return __nvvm_shfl_sync_bfly_f32(mask, value, lanes, 31);
}
static __device__ __forceinline__ int __shfl_xor_sync(unsigned mask, int value,
                                                      int lanes) {
  return __nvvm_shfl_sync_bfly_i32(mask, value, lanes, 31);
}
static __device__ __forceinline__ void __syncwarp(unsigned mask = 0xffffffffu) {
  __nvvm_bar_warp_sync(mask);
}

#endif

#endif /* TCC_OP_CUDA_H */
