// The kernels of RowSwish.cpp, compiled once for each CPU that it names.
// tcc/op.h says what they may do (tcc_op_function).
#include <cstdint>
#include <cstring>

// No function of a library computes this.
static float exponential(float x) {
  x = x < -80 ? -80 : x > 80 ? 80 : x;
  float n = __builtin_floorf(x * 1.44269504f + 0.5f);
  float r = x - n * 0.693359375f + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  const float coefficients[] = {1.3981999507e-3f, 8.3334519073e-3f,
                                4.1665795894e-2f, 1.6666665459e-1f,
                                5.0000001201e-1f};
  for (float c : coefficients)
    p = p * r + c;
  p = p * r * r + r + 1;
  int32_t bits = (int32_t(n) + 127) << 23;
  float scale;
  memcpy(&scale, &bits, 4);
  return p * scale;
}

static float sigmoid(float x) { return 1 / (1 + exponential(-x)); }

static float toFloat(int64_t bits) {
  double value;
  memcpy(&value, &bits, 8);
  return float(value);
}

extern "C" void row_swish(void *const *buffers, const int64_t *sizes,
                          int64_t first, int64_t last, void *) {
  auto *x = static_cast<const float *>(buffers[0]);
  auto *scale = static_cast<const float *>(buffers[1]);
  auto *y = static_cast<float *>(buffers[2]);
  int64_t columns = sizes[0];
  float beta = toFloat(sizes[1]);
  for (int64_t row = first; row < last; ++row)
    for (int64_t i = 0; i < columns; ++i) {
      float value = x[row * columns + i];
      y[row * columns + i] = value * sigmoid(beta * value) * scale[i];
    }
}

extern "C" void row_swish_gradient(void *const *buffers, const int64_t *sizes,
                                   int64_t, int64_t, void *) {
  auto *x = static_cast<const float *>(buffers[0]);
  auto *scale = static_cast<const float *>(buffers[1]);
  auto *dy = static_cast<const float *>(buffers[2]);
  auto *dx = static_cast<float *>(buffers[3]);
  auto *dscale = static_cast<float *>(buffers[4]);
  int64_t rows = sizes[0], columns = sizes[1];
  float beta = toFloat(sizes[2]);
  memset(dscale, 0, columns * sizeof(float));
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t i = 0; i < columns; ++i) {
      int64_t at = row * columns + i;
      float s = sigmoid(beta * x[at]);
      dx[at] = dy[at] * scale[i] * (s + beta * x[at] * s * (1 - s));
      dscale[i] += dy[at] * x[at] * s;
    }
}
