#include "runtime/devices/libraries/ConvolutionGraph.h"

#include "runtime/package/DType.h"
#include "runtime/package/LibraryRules.h"

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::runtime::cuda;
using format::DType;
using format::StepKind;
using format::WorkKind;

std::optional<int> cuda::dnnTypeOf(DType dtype) {
  if (dtype == DType::f32)
    return kDnnF32;
  if (dtype == DType::f16)
    return kDnnF16;
  if (dtype == DType::bf16)
    return kDnnBF16;
  return std::nullopt;
}

/// The mode of a step that LibraryRules.h has of a convolution; of another one
/// what is no mode, so that no plan is made and the kernel runs.
static DnnPointwise modeOf(StepKind step) {
  switch (step) {
  case StepKind::add:
  case StepKind::bias:
    return kDnnAdd;
  case StepKind::relu:
    return kDnnRelu;
  case StepKind::silu:
    return kDnnSwish;
  case StepKind::sigmoid:
    return kDnnSigmoid;
  case StepKind::tanh:
    return kDnnTanh;
  case StepKind::gelu:
    return kDnnGelu;
  case StepKind::gelu_tanh:
    return kDnnGeluTanh;
  default:
    return kDnnNoMode;
  }
}

ConvolutionGraph::ConvolutionGraph(const Cudnn &table, const LibraryWork &work,
                                   DnnHandle handle)
    : table(table), work(work), stepsLeft(static_cast<int>(work.steps.size())),
      firstVirtual(kTensorStep + int64_t(work.steps.size())),
      nextVirtual(firstVirtual) {
  DnnDescriptor sum = addNext();
  convolve(sum);
  for (size_t i = 0; i < work.steps.size(); ++i) {
    const LibraryStep &step = work.steps[i];
    DnnDescriptor operand = step.operand.rank ? addOperand(i) : nullptr;
    DnnDescriptor result = addNext();
    apply(modeOf(step.kind), sum, operand, result);
    sum = result;
  }
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
                                          const StridedView &view) {
  Descriptor tensor(table, kDnnTensor);
  tensor.set(kDnnTensorId, kDnnTypeInt64, id);
  tensor.set(kDnnTensorType, kDnnTypeDataType, dataType);
  tensor.set(kDnnTensorExtents, view.extentSpan());
  tensor.set(kDnnTensorStrides, view.strideSpan());
  tensor.set(kDnnTensorAlignment, kDnnTypeInt64, int64_t(view.alignment));
  if (id >= firstVirtual)
    tensor.set(kDnnTensorIsVirtual, kDnnTypeBoolean, true);
  return finish(std::move(tensor));
}

/// The result if nothing comes behind it, else one that only the graph sees.
DnnDescriptor ConvolutionGraph::addNext() {
  const StridedView &result = work.result;
  if (stepsLeft-- == 0)
    return addTensor(kTensorResult, *dnnTypeOf(result.dtype), result);
  return addTensor(nextVirtual++, kDnnF32, result);
}

/// The operand of a step. A vector is [1, K, 1, ...], aligned as its elements
/// are.
DnnDescriptor ConvolutionGraph::addOperand(size_t step) {
  StridedView view = work.steps[step].operand;
  if (traitsOf(work.steps[step].kind).form == OperandForm::columns) {
    int64_t channels = view.extents[1];
    for (uint32_t axis = 0; axis < view.rank; ++axis) {
      view.extents[axis] = axis == 1 ? channels : 1;
      view.strides[axis] = axis == 1 ? 1 : channels;
    }
    view.alignment = static_cast<uint32_t>(traitsOf(view.dtype).bytes);
  }
  return addTensor(kTensorStep + int64_t(step), *dnnTypeOf(view.dtype), view);
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
  bool isGradient = work.kind == WorkKind::filter_gradient;
  const WindowOperation &kind = isGradient ? kFilterGradient : kForward;
  DnnDescriptor x = addTensor(kTensorLhs, *dnnTypeOf(work.lhs.dtype), work.lhs);
  DnnDescriptor other =
      addTensor(kTensorRhs, *dnnTypeOf(work.rhs.dtype), work.rhs);
  const LibraryWindow &around = work.window;
  Descriptor window(table, kDnnConvolution);
  window.set(kDnnConvolutionPrecision, kDnnTypeDataType, kDnnF32);
  window.set(kDnnConvolutionMode, kDnnTypeConvolutionMode,
             kDnnCrossCorrelation);
  window.set(kDnnSpatialAxes, kDnnTypeInt64, int64_t(around.strides.size()));
  window.set(kDnnPaddingBefore, around.padLow);
  window.set(kDnnPaddingAfter, around.padHigh);
  window.set(kDnnStrides, around.strides);
  window.set(kDnnDilations, around.dilations);
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
