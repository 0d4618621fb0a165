#include <tcc/op_cuda.h>
extern __shared__ int64_t any[];
extern "C" __global__ void kernel(const int64_t *x, int64_t *y) {
  any[threadIdx.x] = x[0];
  __syncthreads();
  y[0] = any[0];
}
