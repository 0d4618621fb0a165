#include "runtime/devices/libraries/ConvolutionGraph.h"

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::runtime::cuda;
using format::Activation;
using format::DType;

std::optional<int> cuda::dnnTypeOf(DType dtype) {
  if (dtype == DType::f32)
    return kDnnF32;
  if (dtype == DType::f16)
    return kDnnF16;
  if (dtype == DType::bf16)
    return kDnnBF16;
  return std::nullopt;
}

ConvolutionGraph::ConvolutionGraph(const Cudnn &table,
                                   const Convolution &convolution,
                                   DnnHandle handle)
    : table(table), convolution(convolution),
      stepsLeft(convolution.addend.has_value() + convolution.hasBias +
                (convolution.activation == Activation::relu)) {
  DnnDescriptor sum = addNext();
  convolve(sum);
  auto applyTo = [&](DnnPointwise mode, DnnDescriptor other) {
    DnnDescriptor result = addNext();
    apply(mode, sum, other, result);
    sum = result;
  };
  if (convolution.addend)
    applyTo(kDnnAdd,
            addTensor(kTensorAddend, *dnnTypeOf(convolution.addend->dtype),
                      *convolution.addend));
  if (convolution.hasBias)
    applyTo(kDnnAdd, addBias());
  if (convolution.activation == Activation::relu)
    applyTo(kDnnRelu, nullptr);
  Descriptor graph(table, kDnnGraph);
  if (handle)
    graph.set(kDnnGraphHandle, kDnnTypeHandle, handle);
  graph.set(kDnnGraphOperations, kDnnTypeDescriptor, operations.data(),
            operations.size());
  finish(std::move(graph));
}

DnnDescriptor ConvolutionGraph::finish(Descriptor part) {
  DnnError error = part.finalize();
  if (failure == kDnnSuccess)
    failure = error;
  parts.push_back(std::move(part));
  return parts.back().get();
}

DnnDescriptor ConvolutionGraph::addTensor(int64_t id, int dataType,
                                          const StridedImage &image) {
  Descriptor tensor(table, kDnnTensor);
  tensor.set(kDnnTensorId, kDnnTypeInt64, id);
  tensor.set(kDnnTensorType, kDnnTypeDataType, dataType);
  tensor.set(kDnnTensorExtents, image.extents);
  tensor.set(kDnnTensorStrides, image.strides);
  tensor.set(kDnnTensorAlignment, kDnnTypeInt64, int64_t(image.alignment));
  if (id >= kTensorVirtual)
    tensor.set(kDnnTensorIsVirtual, kDnnTypeBoolean, true);
  return finish(std::move(tensor));
}

/// The result if nothing comes behind it, else one that only the graph sees.
DnnDescriptor ConvolutionGraph::addNext() {
  const StridedImage &result = convolution.result;
  if (stepsLeft-- == 0)
    return addTensor(kTensorResult, *dnnTypeOf(result.dtype), result);
  return addTensor(nextVirtual++, kDnnF32, result);
}

/// [1, K, 1, ...], aligned as its elements are.
DnnDescriptor ConvolutionGraph::addBias() {
  StridedImage bias = convolution.result;
  int64_t channels = bias.extents[1];
  bias.extents.assign(bias.extents.size(), 1);
  bias.strides.assign(bias.strides.size(), channels);
  bias.extents[1] = channels;
  bias.strides[1] = 1;
  bias.alignment = bias.dtype == DType::f32 ? 4 : 2;
  return addTensor(kTensorBias, *dnnTypeOf(bias.dtype), bias);
}

namespace {

/// An operation with a window, and what its attributes are called.
struct WindowOperation {
  DnnKind kind;
  DnnAttribute window, x, filter, y, alpha, beta;
};
constexpr WindowOperation kForward{
    kDnnConvolutionForward, kDnnForwardConvolution, kDnnForwardX,
    kDnnForwardFilter,      kDnnForwardY,           kDnnForwardAlpha,
    kDnnForwardBeta};
constexpr WindowOperation kFilterGradient{kDnnConvolutionFilterGradient,
                                          kDnnGradientConvolution,
                                          kDnnGradientX,
                                          kDnnGradientFilter,
                                          kDnnGradientY,
                                          kDnnGradientAlpha,
                                          kDnnGradientBeta};

} // namespace

void ConvolutionGraph::convolve(DnnDescriptor result) {
  const Convolution &c = convolution;
  bool isGradient = c.kind == format::ConvolutionKind::filter_gradient;
  const WindowOperation &kind = isGradient ? kFilterGradient : kForward;
  DnnDescriptor x = addTensor(kTensorX, *dnnTypeOf(c.x.dtype), c.x);
  DnnDescriptor other =
      addTensor(kTensorFilter, *dnnTypeOf(c.filter.dtype), c.filter);
  Descriptor window(table, kDnnConvolution);
  window.set(kDnnConvolutionPrecision, kDnnTypeDataType, kDnnF32);
  window.set(kDnnConvolutionMode, kDnnTypeConvolutionMode,
             kDnnCrossCorrelation);
  window.set(kDnnSpatialAxes, kDnnTypeInt64, int64_t(c.strides.size()));
  window.set(kDnnPaddingBefore, c.padLow);
  window.set(kDnnPaddingAfter, c.padHigh);
  window.set(kDnnStrides, c.strides);
  window.set(kDnnDilations, c.dilations);
  Descriptor operation(table, kind.kind);
  operation.set(kind.window, kDnnTypeDescriptor, finish(std::move(window)));
  operation.set(kind.x, kDnnTypeDescriptor, x);
  operation.set(kind.filter, kDnnTypeDescriptor, isGradient ? result : other);
  operation.set(kind.y, kDnnTypeDescriptor, isGradient ? other : result);
  operation.set(kind.alpha, kDnnTypeFloat, 1.0f);
  operation.set(kind.beta, kDnnTypeFloat, 0.0f);
  operations.push_back(finish(std::move(operation)));
}

void ConvolutionGraph::apply(DnnPointwise mode, DnnDescriptor x,
                             DnnDescriptor other, DnnDescriptor result) {
  Descriptor function(table, kDnnPointwise);
  function.set(kDnnPointwiseMode, kDnnTypePointwiseMode, mode);
  function.set(kDnnPointwisePrecision, kDnnTypeDataType, kDnnF32);
  if (mode == kDnnRelu)
    function.set(kDnnPointwiseNan, kDnnTypeNanPropagation, kDnnPropagateNan);
  Descriptor operation(table, kDnnPointwiseOperation);
  operation.set(kDnnOperationPointwise, kDnnTypeDescriptor,
                finish(std::move(function)));
  operation.set(kDnnOperationX, kDnnTypeDescriptor, x);
  if (other)
    operation.set(kDnnOperationB, kDnnTypeDescriptor, other);
  operation.set(kDnnOperationY, kDnnTypeDescriptor, result);
  operations.push_back(finish(std::move(operation)));
}
