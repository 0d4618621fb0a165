// Kernels for GPUs that are wrong, each in one way.
#include <tcc/op_cuda.h>

extern "C" __global__ void thrice(const float *x, float *y, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n)
    y[i] = 3 * x[i];
}

// Threads read what others write, without a barrier between.
extern "C" __global__ void races(const float *x, float *y, int64_t n) {
  __shared__ float values[64];
  int64_t first = int64_t(blockIdx.x) * blockDim.x;
  int64_t i = first + threadIdx.x;
  values[threadIdx.x] = i < n ? x[i] : 0;
  int other = blockDim.x - 1 - threadIdx.x;
  if (first + other < n)
    y[first + other] = 2 * values[other];
}

extern "C" __global__ void beyond(const float *x, float *y, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  y[i * n * n] = 2 * x[i];
}

extern "C" __global__ void twice(const float *x, float *y, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n)
    y[i] = 2 * x[i];
}

// What the emulated device has not, and GPUs have.
extern "C" __device__ float __nv_fast_expf(float);
extern "C" __global__ void fast(const float *x, float *y, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n)
    y[i] = __nv_fast_expf(x[i]);
}

extern "C" __global__ void assembly(const float *x, float *y, int64_t n) {
  asm volatile("bar.sync 0;");
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n)
    y[i] = x[i];
}

extern "C" __global__ void second(const float *x, float *y, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.y;
  if (i < n)
    y[i] = x[i];
}
