//===- Kernels.h - The generated kernels that are timed ---------*- C++ -*-===//
#ifndef TCC_TESTS_BENCH_MATRIX_KERNELS_H
#define TCC_TESTS_BENCH_MATRIX_KERNELS_H

#include <cstdint>
#include <functional>
#include <string>

namespace tcc::bench {

struct MatmulShape {
  int64_t m, n, k;

  std::string getName() const;
  double getFlops() const { return 2.0 * m * n * k; }
};

/// A 2-d convolution of one image, padded by half a window. A depthwise one has
/// as many filters as channels.
struct ConvolutionShape {
  int64_t channels, filters, size, taps, stride;
  bool isDepthwise = false;

  int64_t pad() const { return taps / 2; }
  int64_t output() const { return (size + 2 * pad() - taps) / stride + 1; }
  std::string getName() const;
  double getFlops() const {
    double pixels = double(output()) * output() * taps * taps;
    return 2 * pixels * filters * (isDepthwise ? 1 : channels);
  }
};

/// Bytes of the vectors that code for `cpu` uses. Exits if it is not known.
int getVectorBytes(const std::string &cpu);

/// Runs of the kernel that tcc makes for `cpu`, on packed weights and random
/// inputs, on one thread. Exits where there is none.
std::function<void()> makeMatmul(MatmulShape shape, const std::string &cpu);
std::function<void()> makeConvolution(ConvolutionShape shape,
                                      const std::string &cpu);

} // namespace tcc::bench

#endif // TCC_TESTS_BENCH_MATRIX_KERNELS_H
