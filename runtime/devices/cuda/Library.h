//===- Library.h - Matrix products by a library -----------------*- C++ -*-===//
//
// What the runtime asks of a library of matrix products. The library is behind
// a plugin, libtcc_cuda_libs, that is opened where a package has products.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_RUNTIME_DEVICES_CUDA_LIBRARY_H
#define TCC_RUNTIME_DEVICES_CUDA_LIBRARY_H

#include "runtime/devices/cuda/Driver.h"
#include "runtime/package/Program_generated.h"

#include <memory>
#include <optional>

namespace tcc::runtime::cuda {

struct CublasLt;

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
struct MatrixProduct {
  int64_t batch, m, n, k; ///< all at least 1
  StridedMatrix lhs, rhs, result;
  std::optional<StridedMatrix> addend;
  bool hasBias; ///< of the result's dtype, its elements adjacent
  double scale;
  format::Activation activation;
  auto operator<=>(const MatrixProduct &) const = default;
};

/// Addresses of the device, as aligned as the product says.
struct ProductOperands {
  const void *lhs, *rhs, *addend, *bias; ///< the last two null if not there
  void *result;
};

/// How the library computes one product. One thread at a time.
class ProductPlan {
public:
  virtual ~ProductPlan() = default;
  /// Adds it to a stream of the context that the plan was made in.
  virtual Status enqueue(const ProductOperands &operands,
                         StreamHandle stream) = 0;
};

/// A library that is open in the current context. One thread at a time.
class Library {
public:
  virtual ~Library() = default;
  /// As it names itself, with its version.
  virtual std::string_view name() const = 0;
  /// Of what is deterministic and needs no more than the workspace, which is
  /// 256-aligned, what the library thinks is fastest. Null if it has nothing.
  virtual Result<std::unique_ptr<ProductPlan>>
  plan(const MatrixProduct &product, void *workspace, size_t bytes) = 0;
};

/// Who is asked for the library.
struct LibraryChoice {
  const char *places = nullptr;        ///< TCC_CUDA_LIB
  const CublasLt *simulated = nullptr; ///< in its place
};

/// What the plugin exports as tcc_open_cuda_library. The context is current.
using OpenLibrary =
    Result<std::unique_ptr<Library>> (*)(const LibraryChoice &choice);

} // namespace tcc::runtime::cuda

#endif // TCC_RUNTIME_DEVICES_CUDA_LIBRARY_H
