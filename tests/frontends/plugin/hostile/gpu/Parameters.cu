#include <tcc/op_cuda.h>
extern "C" __global__ void kernel(const int64_t *x, int64_t *y, int n) {
  y[0] = x[0] + n;
}
extern "C" __global__ void narrow(const int64_t *x, int y) {}
extern "C" __device__ void function(const int64_t *x, int64_t *y) {
  y[0] = x[0];
}
