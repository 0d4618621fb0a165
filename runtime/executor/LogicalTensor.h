//===- LogicalTensor.h - Tensors as files name them -------------*- C++ -*-===//
#ifndef TCC_RUNTIME_EXECUTOR_LOGICALTENSOR_H
#define TCC_RUNTIME_EXECUTOR_LOGICALTENSOR_H

#include "runtime/package/DType.h"
#include "runtime/package/Program_generated.h"

#include <functional>
#include <string_view>
#include <vector>

namespace tcc::runtime {

/// A tensor as files name it. All of it lies in one variable, whose type and
/// kind it has. Of a variable that is divided rank r has the r-th part, of as
/// many elements as the variable's shape says, and the tensor begins at element
/// `first` of all parts together; of others each rank has the same.
struct LogicalTensor {
  std::string_view name;
  std::string_view parameter; ///< that a slot, gradient or copy belongs to
  DType dtype;
  std::span<const int64_t> shape;
  uint64_t count; ///< elements
  size_t variable;
  uint64_t first = 0;
  bool isDivided = false;
  /// Where the variable, which is of `extents`, begins in the tensor; both are
  /// empty if it has all of it, or is divided.
  std::span<const int64_t> extents = {}, offset = {};
};

/// Elements of a tensor that a rank has: [begin, begin + count) of the tensor
/// in row-major order, from element `at` of the rank's variable on.
struct Piece {
  size_t tensor; ///< its position among the tensors
  uint64_t begin, count, at;

  friend bool operator==(const Piece &, const Piece &) = default;
};

/// The tensors of all variables of a program, which was verified and outlives
/// them, in the order of the variables.
std::vector<LogicalTensor> listTensors(const format::Program &program);

/// What rank `rank` has of the tensors, in their order and that of their
/// elements; `partCount(i)` are the elements of variable i of one rank. Of a
/// tensor without elements it has a piece of none.
std::vector<Piece> cutPieces(std::span<const LogicalTensor> tensors, int rank,
                             const std::function<uint64_t(size_t)> &partCount);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_EXECUTOR_LOGICALTENSOR_H
