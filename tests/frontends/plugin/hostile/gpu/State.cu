#include <tcc/op_cuda.h>
__device__ int64_t count;
extern "C" __global__ void kernel(const int64_t *x, int64_t *y) {
  y[0] = x[0] + count++;
}
