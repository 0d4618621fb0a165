//===- Kernels.h - The generated kernels under test -------------*- C++ -*-===//
#ifndef TCC_TESTS_BENCH_MATRIX_KERNELS_H
#define TCC_TESTS_BENCH_MATRIX_KERNELS_H

#include "tests/bench/matrix/Jit.h"
#include <cstdint>
#include <new>
#include <vector>

namespace tcc::bench {

struct MatmulShape {
  int64_t m, n, k;
};

/// A 2-d convolution without groups; `channels` in and out of a depthwise one.
struct ConvolutionShape {
  int64_t channels, filters, size, taps, stride;

  int64_t pad() const { return taps / 2; }
  int64_t output() const { return (size + 2 * pad() - taps) / stride + 1; }
};

/// Buffers as a package's are: aligned to 64 bytes.
template <typename T> struct AlignedAllocator {
  using value_type = T;
  AlignedAllocator() = default;
  template <typename U> AlignedAllocator(const AlignedAllocator<U> &) {}
  T *allocate(size_t n) {
    return static_cast<T *>(::operator new(n * sizeof(T), alignment));
  }
  void deallocate(T *p, size_t) { ::operator delete(p, alignment); }
  bool operator==(const AlignedAllocator &) const { return true; }

  static constexpr std::align_val_t alignment{64};
};
using Buffer = std::vector<float, AlignedAllocator<float>>;

/// A kernel in memory: reads `lhs` and `rhs`, writes `out`, runs all its tasks.
class Kernel {
public:
  static Kernel matmul(mlir::MLIRContext &context, MatmulShape shape,
                       const std::string &cpu);
  static Kernel convolution(mlir::MLIRContext &context, ConvolutionShape shape,
                            const std::string &cpu);

  /// Also reads lhs [channels, taps, taps] and rhs [channels, size, size].
  static Kernel depthwise(mlir::MLIRContext &context, ConvolutionShape shape,
                          const std::string &cpu);

  void run(const float *lhs, const float *rhs, float *out);
  const std::string &assembly() const { return jit->assembly(); }

private:
  using Function = void (*)(const float *lhs, const float *rhs, float *out,
                            char *scratch);
  std::unique_ptr<Jit> jit;
  Function function;
  std::vector<char, AlignedAllocator<char>> scratch;

  Kernel(std::unique_ptr<Jit> jit, int64_t scratchBytes);
};

/// [rows, depth] -> [ceil(rows / width)][depth][width], padded with zeros.
Buffer packPanels(const Buffer &matrix, int64_t rows, int64_t depth,
                  int64_t width, int64_t rowStride, int64_t depthStride);

} // namespace tcc::bench

#endif // TCC_TESTS_BENCH_MATRIX_KERNELS_H
