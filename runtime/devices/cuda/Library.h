//===- Library.h - Products and convolutions by a library -------*- C++ -*-===//
//
// What the runtime asks of NVIDIA's libraries. They are behind a plugin,
// libtcc_cuda_libs, that is opened where a package has kernels that they have.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_RUNTIME_DEVICES_CUDA_LIBRARY_H
#define TCC_RUNTIME_DEVICES_CUDA_LIBRARY_H

#include "runtime/devices/cuda/Driver.h"
#include "runtime/package/Program_generated.h"

#include <memory>
#include <optional>
#include <vector>

namespace tcc::runtime::cuda {

struct CublasLt;
struct Cudnn;

/// Element (b, i, j) lies at b * batch + i * row + j * column, in elements,
/// from an address that is a multiple of `alignment` bytes.
struct StridedMatrix {
  format::DType dtype;
  int64_t batch, row, column;
  uint32_t alignment;
  auto operator<=>(const StridedMatrix &) const = default;
};

/// result[b, i, j] = activation(scale * sum_k lhs[b, i, k] * rhs[b, k, j]
///                              + addend[b, i, j] + bias[j])
///
/// What the activation, gelu_tanh, is of is stored in `sum`, if it is there. Of
/// gelu_tanh_gradient it is read: the product, to which nothing is added, is
/// multiplied with gelu_tanh'(sum[b, i, j]). `depthSums` are a second result,
/// sum_k rhs[0, k, j] or sum_k lhs[0, i, k]; scale, bias and activation are
/// not.
struct MatrixProduct {
  int64_t batch, m, n, k; ///< all at least 1
  StridedMatrix lhs, rhs, result;
  std::optional<StridedMatrix> addend;
  bool hasBias; ///< of the result's dtype, its elements adjacent
  double scale;
  format::Activation activation;
  bool tf32 = false; ///< lhs and rhs, of f32, may be rounded to it
  std::optional<StridedMatrix> sum = {};       ///< of the result's dtype
  std::optional<StridedMatrix> depthSums = {}; ///< likewise, a vector
  bool sumsLhs = false;
  auto operator<=>(const MatrixProduct &) const = default;
};

/// An image [N, C, spatial...], filters [K, C / groups, window...] or a result
/// [N, K, spatial...], with the strides of these axes in elements.
struct StridedImage {
  format::DType dtype;
  std::vector<int64_t> extents, strides; ///< of 3 to 5 axes
  uint32_t alignment;                    ///< bytes, as of a StridedMatrix
  auto operator<=>(const StridedImage &) const = default;
};

/// result[n, k, p] = activation(sum_{c, t} x[n, c, p * stride + t * dilation -
///     padLow] * filter[k, c, t] + addend[n, k, p] + bias[k])
///
/// Sums are f32. The activation is none or relu, which keeps NaN. A filter's
/// gradient, which has neither addend, bias nor activation, is
///
/// result[k, c, t] = sum_{n, p} x[n, c, p * stride + t * dilation - padLow] *
///     filter[n, k, p]
struct Convolution {
  StridedImage x, filter, result;
  std::optional<StridedImage> addend; ///< of the result's dtype and extents
  bool hasBias; ///< of the result's dtype, its elements adjacent
  std::vector<int64_t> padLow, padHigh, strides,
      dilations; ///< one a window axis
  format::Activation activation;
  bool tf32 = false; ///< as of a MatrixProduct
  format::ConvolutionKind kind = format::ConvolutionKind::forward;
  auto operator<=>(const Convolution &) const = default;
};

/// Addresses of the device, as aligned as the description says. Of a
/// convolution `lhs` is x and `rhs` the filter.
struct LibraryOperands {
  const void *lhs, *rhs, *addend, *bias; ///< the last two null if not there
  void *result;
  void *sum = nullptr;       ///< likewise; read alone for a gradient
  void *depthSums = nullptr; ///< likewise
  auto operator<=>(const LibraryOperands &) const = default;
};

/// Libraries list their ways to do one thing, the one that they think fastest
/// first; only as many are looked at.
inline constexpr size_t kMaxWays = 64;

/// How a library computes one thing. One thread at a time.
class LibraryPlan {
public:
  virtual ~LibraryPlan() = default;
  /// Its place among the library's ways to do it.
  virtual size_t way() const = 0;
  /// Adds it to a stream of the context that the plan was made in.
  virtual Status enqueue(const LibraryOperands &operands,
                         StreamHandle stream) = 0;
};

/// Libraries that are open in the current context. One thread at a time.
///
/// A plan is, of the ways from `first` on, the first one that is deterministic
/// and needs no more than the workspace, which is 256-aligned; null if there is
/// none.
class Library {
public:
  virtual ~Library() = default;
  /// As they name themselves, with their versions.
  virtual std::string_view name() const = 0;
  /// What is missing, and why; empty if nothing is.
  virtual std::string_view note() const = 0;
  virtual Result<std::unique_ptr<LibraryPlan>>
  plan(const MatrixProduct &product, void *workspace, size_t bytes,
       size_t first = 0) = 0;
  virtual Result<std::unique_ptr<LibraryPlan>>
  plan(const Convolution &convolution, void *workspace, size_t bytes,
       size_t first = 0) = 0;
};

/// Which libraries are opened, and where they are.
struct LibraryChoice {
  const char *places = nullptr;                    ///< TCC_CUDA_LIB
  bool hasProducts = true, hasConvolutions = true; ///< for plans of these
  bool isSimulated = false; ///< by the tables below, not those that are found
  const CublasLt *simulatedBlas = nullptr; ///< null: it is missing
  const Cudnn *simulatedDnn = nullptr;     ///< likewise
};

/// What the plugin exports as tcc_open_cuda_library: the caller's own. The
/// context is current. A library that is missing is not an error.
using OpenLibrary = Library *(*)(const LibraryChoice &choice);

} // namespace tcc::runtime::cuda

#endif // TCC_RUNTIME_DEVICES_CUDA_LIBRARY_H
