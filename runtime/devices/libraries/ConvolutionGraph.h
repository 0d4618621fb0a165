//===- ConvolutionGraph.h - A convolution in cuDNN's words ------*- C++ -*-===//
#ifndef TCC_RUNTIME_DEVICES_LIBRARIES_CONVOLUTIONGRAPH_H
#define TCC_RUNTIME_DEVICES_LIBRARIES_CONVOLUTIONGRAPH_H

#include "runtime/devices/cuda/Library.h"
#include "runtime/devices/libraries/Descriptor.h"

namespace tcc::runtime::cuda {

/// What the tensors of a graph are called: the operand of step i is kTensorStep
/// + i, and what is not stored comes after those of all steps.
enum TensorId : int64_t {
  kTensorLhs = 1,
  kTensorRhs,
  kTensorResult,
  kTensorStep
};

/// An operation graph: the convolution, then its steps one by one.
class ConvolutionGraph {
public:
  /// `handle` is null where there is no device to run it on. A graph that has
  /// an error cannot be used.
  ConvolutionGraph(const Cudnn &table, const LibraryWork &work,
                   DnnHandle handle);

  DnnError error() const { return failure; }
  DnnDescriptor get() const { return parts.back().get(); }

private:
  DnnDescriptor finish(Descriptor part);
  DnnDescriptor addTensor(int64_t id, int dataType, const StridedView &view);
  DnnDescriptor addOperand(size_t step);
  DnnDescriptor addNext();
  void convolve(DnnDescriptor result);
  void apply(DnnPointwise mode, DnnDescriptor x, DnnDescriptor other,
             DnnDescriptor result);

  const Cudnn &table;
  const LibraryWork &work;
  int stepsLeft; ///< behind the last tensor that addNext made
  int64_t firstVirtual, nextVirtual; ///< what is called so is not stored
  DnnError failure = kDnnSuccess;
  std::vector<Descriptor> parts; ///< the last one is the graph
  std::vector<DnnDescriptor> operations;
};

/// cudnnDataType_t; nothing for types that are not taken.
std::optional<int> dnnTypeOf(format::DType dtype);

} // namespace tcc::runtime::cuda

#endif // TCC_RUNTIME_DEVICES_LIBRARIES_CONVOLUTIONGRAPH_H
