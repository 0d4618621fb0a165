#include <tcc/op_cuda.h>
extern "C" __device__ int printf(const char *, ...);
extern "C" __global__ void kernel(const int64_t *x, int64_t *y) {
  printf("%d", int(x[0]));
  y[0] = x[0];
}
