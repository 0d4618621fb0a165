#include <tcc/op_cuda.h>
extern "C" __global__ void kernel(const int64_t *x, int64_t *y) {
  __shared__ int64_t many[10000];
  many[threadIdx.x] = x[0];
  __syncthreads();
  y[0] = many[5];
}
