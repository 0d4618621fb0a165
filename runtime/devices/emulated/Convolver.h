//===- Convolver.h - Operation graphs as cuDNN describes them ---*- C++ -*-===//
#ifndef TCC_RUNTIME_DEVICES_EMULATED_CONVOLVER_H
#define TCC_RUNTIME_DEVICES_EMULATED_CONVOLVER_H

#include "runtime/base/Status.h"
#include "runtime/devices/emulated/Elements.h"

#include <functional>
#include <map>
#include <vector>

namespace tcc::emulated {

/// A descriptor as it was read back.
struct TensorView {
  int64_t id = 0;
  DType dtype = DType::f32;
  std::vector<int64_t> extents, strides;
  int64_t alignment = 0;  ///< bytes
  bool isVirtual = false; ///< has no place
};

/// A node of a graph: ids of what it reads and writes.
struct TensorOperation {
  enum Kind { Convolve, DeriveFilter, Add, Map };
  Kind kind = Convolve;
  /// x, and the filter or the gradient of a convolution; a Map has one.
  int64_t first = 0, second = 0;
  int64_t result = 0; ///< of DeriveFilter: the gradient of the filter
  std::vector<int64_t> before, after, strides, dilations; ///< of a window
  std::function<double(double)> map;                      ///< of a Map
};

struct TensorGraph {
  std::map<int64_t, TensorView> tensors; ///< by id
  std::vector<TensorOperation> operations;
};

/// Bytes from the first element to the end of the last one.
size_t extentOf(const TensorView &tensor);

/// An error unless shapes go together as cuDNN documents them, each virtual
/// tensor is f32 and written before it is read, and no other one is written
/// but by one operation.
runtime::Status checkGraph(const TensorGraph &graph);

/// Computes it in f64, operations in their order. Requires checkGraph, and the
/// places of all that are not virtual.
void compute(const TensorGraph &graph, const std::map<int64_t, void *> &places);

} // namespace tcc::emulated

#endif // TCC_RUNTIME_DEVICES_EMULATED_CONVOLVER_H
