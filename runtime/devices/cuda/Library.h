//===- Library.h - Kernels by a library -------------------------*- C++ -*-===//
//
// What the runtime asks of NVIDIA's libraries. They are behind a plugin,
// libtcc_cuda_libs, that is opened where a package has kernels that they have.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_RUNTIME_DEVICES_CUDA_LIBRARY_H
#define TCC_RUNTIME_DEVICES_CUDA_LIBRARY_H

#include "runtime/devices/cuda/Driver.h"
#include "runtime/package/LibraryWork.h"

#include <memory>

namespace tcc::runtime::cuda {

struct CublasLt;
struct Cudnn;

/// Addresses of the device, as aligned as the work says.
struct LibraryOperands {
  const void *lhs, *rhs;
  void *result;
  /// One for each step of the work, null for those that have no operand.
  std::vector<void *> steps;
  auto operator<=>(const LibraryOperands &) const = default;
};

/// The address of the operand of the step of that kind; null if there is none.
inline void *findOperand(const LibraryWork &work,
                         const LibraryOperands &operands,
                         format::StepKind kind) {
  const LibraryStep *step = findStep(work, kind);
  return step ? operands.steps[step - work.steps.data()] : nullptr;
}

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
/// Works are well-formed (LibraryRules.h). A plan is, of the ways from `first`
/// on, the first one that is deterministic and needs no more than the
/// workspace, which is 256-aligned; null if there is none.
class Library {
public:
  virtual ~Library() = default;
  /// As they name themselves, with their versions.
  virtual std::string_view name() const = 0;
  /// What is missing, and why; empty if nothing is.
  virtual std::string_view note() const = 0;
  virtual Result<std::unique_ptr<LibraryPlan>> plan(const LibraryWork &work,
                                                    void *workspace,
                                                    size_t bytes,
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
