//===- LibraryWork.h - What a library does in one call ----------*- C++ -*-===//
//
// The LibraryWork of Program.fbs with numbers for its sizes. The compiler makes
// one of a kernel before all sizes are known, the runtime one of a launch.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_RUNTIME_PACKAGE_LIBRARYWORK_H
#define TCC_RUNTIME_PACKAGE_LIBRARYWORK_H

#include "runtime/package/Program_generated.h"

#include <array>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace tcc::runtime {

/// An extent or stride that is not known before the program runs.
inline constexpr int64_t kUnknownSize = std::numeric_limits<int64_t>::min();

/// The most axes of an operand: images with three spatial ones.
inline constexpr size_t kMaxLibraryAxes = 5;

/// Element (i, j, ...) lies i * strides[0] + j * strides[1] + ... elements
/// behind an address that is a multiple of `alignment` bytes.
struct StridedView {
  format::DType dtype = format::DType::f32;
  uint32_t rank = 0;
  uint32_t alignment = 0;                         ///< 0: not known
  std::array<int64_t, kMaxLibraryAxes> extents{}, ///< from `rank` on zeros
      strides{};
  std::span<const int64_t> extentSpan() const { return {extents.data(), rank}; }
  std::span<const int64_t> strideSpan() const { return {strides.data(), rank}; }
  auto operator<=>(const StridedView &) const = default;
};

struct LibraryStep {
  format::StepKind kind;
  double factor = 1;        ///< of a scale
  StridedView operand = {}; ///< of rank 0 if the kind has none
  auto operator<=>(const LibraryStep &) const = default;
};

/// One entry a spatial axis; none for a product.
struct LibraryWindow {
  std::vector<int64_t> padLow, padHigh, strides, dilations;
  auto operator<=>(const LibraryWindow &) const = default;
};

struct LibraryWork {
  format::WorkKind kind = format::WorkKind::product;
  StridedView lhs = {}, rhs = {}, result = {};
  std::vector<LibraryStep> steps = {}; ///< in the order in which they are done
  bool tf32 = false; ///< lhs and rhs, of f32, may be rounded to it
  LibraryWindow window = {};
  auto operator<=>(const LibraryWork &) const = default;
};

/// Whether this version of the format has all kinds that `source` has. What a
/// newer one added has no meaning here.
bool hasKnownKinds(const format::LibraryWork &source);

/// A size as a number, maybe kUnknownSize; nothing if it has none.
using ReadSize =
    std::function<std::optional<int64_t>(const format::SizeExpr &size)>;

/// `source`, whose kinds are known, but for where operands begin. Nothing if
/// lists in it have no such length, or a size has no number.
std::optional<LibraryWork> readLibraryWork(const format::LibraryWork &source,
                                           const ReadSize &readSize);

/// The step of that kind; null if there is none.
inline const LibraryStep *findStep(const LibraryWork &work,
                                   format::StepKind kind) {
  for (const LibraryStep &step : work.steps)
    if (step.kind == kind)
      return &step;
  return nullptr;
}

} // namespace tcc::runtime

#endif // TCC_RUNTIME_PACKAGE_LIBRARYWORK_H
