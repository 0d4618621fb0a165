// The GPU kernels of RowSwish.cpp: tcc/op.h says what their parameters are. A
// block computes a row of the result, or sums columns.
#include <tcc/op_cuda.h>

static __device__ float sigmoid(float x) { return 1 / (1 + expf(-x)); }

extern "C" __global__ void row_swish(const float *x, const float *scale,
                                     float *y, int64_t columns, double beta) {
  int64_t row = blockIdx.x;
  for (int64_t i = threadIdx.x; i < columns; i += blockDim.x) {
    float value = x[row * columns + i];
    y[row * columns + i] = value * sigmoid(float(beta) * value) * scale[i];
  }
}

// Threads go down a column of their own and a warp's next to each other; the
// warps of a block share the rows.
extern "C" __global__ void row_swish_gradient(const float *x,
                                              const float *scale,
                                              const float *dy, float *dx,
                                              float *dscale, int64_t rows,
                                              int64_t columns, double beta) {
  constexpr int kLanes = 32, kWarps = 8;
  __shared__ float parts[kWarps][kLanes];
  int lane = threadIdx.x % kLanes, warp = threadIdx.x / kLanes;
  int64_t column = int64_t(blockIdx.x) * kLanes + lane;
  float sum = 0;
  if (column < columns)
    for (int64_t row = warp; row < rows; row += kWarps) {
      int64_t at = row * columns + column;
      float s = sigmoid(float(beta) * x[at]);
      dx[at] = dy[at] * scale[column] * (s + float(beta) * x[at] * s * (1 - s));
      sum += dy[at] * x[at] * s;
    }
  parts[warp][lane] = sum;
  __syncthreads();
  if (warp != 0 || column >= columns)
    return;
  for (int i = 1; i < kWarps; ++i)
    sum += parts[i][lane];
  dscale[column] = sum;
}
