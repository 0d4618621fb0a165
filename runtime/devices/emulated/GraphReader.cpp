#include "runtime/devices/emulated/GraphReader.h"

#include <cmath>
#include <numbers>

using namespace tcc;
using namespace tcc::emulated;
using namespace tcc::runtime::cuda;

std::set<Description *> &emulated::descriptions() {
  static std::set<Description *> all;
  return all;
}

Description *emulated::find(DnnDescriptor handle) {
  auto *description = reinterpret_cast<Description *>(handle);
  return descriptions().count(description) ? description : nullptr;
}

TensorView GraphReader::tensor(const Description &description) {
  TensorView view;
  view.id = one<int64_t>(description, kDnnTensorId, kDnnTypeInt64);
  int type = one<int>(description, kDnnTensorType, kDnnTypeDataType);
  view.dtype = type == kDnnF16    ? DType::f16
               : type == kDnnBF16 ? DType::bf16
                                  : DType::f32;
  isOk = isOk && (type == kDnnF32 || view.dtype != DType::f32);
  view.extents = all<int64_t>(description, kDnnTensorExtents, kDnnTypeInt64);
  view.strides = all<int64_t>(description, kDnnTensorStrides, kDnnTypeInt64);
  view.alignment =
      one<int64_t>(description, kDnnTensorAlignment, kDnnTypeInt64);
  view.isVirtual = description.attributes.count(kDnnTensorIsVirtual) &&
                   one<char>(description, kDnnTensorIsVirtual, kDnnTypeBoolean);
  return view;
}

void GraphReader::readWindow(const Description &description,
                             TensorOperation &operation) {
  auto sizes = [&](int attribute) {
    return all<int64_t>(description, attribute, kDnnTypeInt64);
  };
  operation.before = sizes(kDnnPaddingBefore);
  operation.after = sizes(kDnnPaddingAfter);
  operation.strides = sizes(kDnnStrides);
  operation.dilations = sizes(kDnnDilations);
  int64_t axes = one<int64_t>(description, kDnnSpatialAxes, kDnnTypeInt64);
  isOk = isOk && axes == static_cast<int64_t>(operation.strides.size()) &&
         one<int>(description, kDnnConvolutionPrecision, kDnnTypeDataType) ==
             kDnnF32 &&
         one<int>(description, kDnnConvolutionMode, kDnnTypeConvolutionMode) ==
             kDnnCrossCorrelation;
}

/// The function of a mode with one operand; null of another mode.
static std::function<double(double)> findFunction(int mode, bool keepsNan) {
  if (mode == kDnnRelu)
    return [keepsNan](double x) {
      return x > 0 || (std::isnan(x) && keepsNan) ? x : 0;
    };
  switch (mode) {
  case kDnnSwish:
    return [](double x) { return x / (1 + std::exp(-x)); };
  case kDnnSigmoid:
    return [](double x) { return 1 / (1 + std::exp(-x)); };
  case kDnnTanh:
    return [](double x) { return std::tanh(x); };
  case kDnnGelu:
    return [](double x) {
      return x / 2 * (1 + std::erf(x / std::numbers::sqrt2));
    };
  case kDnnGeluTanh:
    return [](double x) {
      double inner = std::sqrt(2 / std::numbers::pi);
      return x / 2 * (1 + std::tanh(inner * (x + 0.044715 * x * x * x)));
    };
  default:
    return nullptr;
  }
}

void GraphReader::readPointwise(const Description &description,
                                TensorOperation &operation) {
  int mode = one<int>(description, kDnnPointwiseMode, kDnnTypePointwiseMode);
  bool keepsNan = description.attributes.count(kDnnPointwiseNan) &&
                  one<int>(description, kDnnPointwiseNan,
                           kDnnTypeNanPropagation) == kDnnPropagateNan;
  operation.map = findFunction(mode, keepsNan);
  operation.kind = operation.map ? TensorOperation::Map : TensorOperation::Add;
  isOk = isOk && (operation.map || mode == kDnnAdd) &&
         one<int>(description, kDnnPointwisePrecision, kDnnTypeDataType) ==
             kDnnF32;
}

TensorOperation GraphReader::operation(const Description &description,
                                       TensorGraph &graph) {
  TensorOperation operation;
  auto addTensor = [&](int attribute) {
    TensorView view = tensor(part(description, attribute, kDnnTensor));
    graph.tensors[view.id] = view;
    return view.id;
  };
  auto readConvolution = [&](TensorOperation::Kind kind, int window, int first,
                             int second, int result, int alpha, int beta) {
    operation.kind = kind;
    readWindow(part(description, window, kDnnConvolution), operation);
    operation.first = addTensor(first);
    operation.second = addTensor(second);
    operation.result = addTensor(result);
    isOk = isOk && one<float>(description, alpha, kDnnTypeFloat) == 1 &&
           one<float>(description, beta, kDnnTypeFloat) == 0;
    return operation;
  };
  if (description.kind == kDnnConvolutionForward)
    return readConvolution(TensorOperation::Convolve, kDnnForwardConvolution,
                           kDnnForwardX, kDnnForwardFilter, kDnnForwardY,
                           kDnnForwardAlpha, kDnnForwardBeta);
  if (description.kind == kDnnConvolutionFilterGradient)
    return readConvolution(
        TensorOperation::DeriveFilter, kDnnGradientConvolution, kDnnGradientX,
        kDnnGradientY, kDnnGradientFilter, kDnnGradientAlpha, kDnnGradientBeta);
  isOk = isOk && description.kind == kDnnPointwiseOperation;
  readPointwise(part(description, kDnnOperationPointwise, kDnnPointwise),
                operation);
  operation.first = addTensor(kDnnOperationX);
  if (operation.kind == TensorOperation::Add)
    operation.second = addTensor(kDnnOperationB);
  operation.result = addTensor(kDnnOperationY);
  return operation;
}

TensorGraph GraphReader::graph(const Description &description) {
  TensorGraph graph;
  for (DnnDescriptor handle : all<DnnDescriptor>(
           description, kDnnGraphOperations, kDnnTypeDescriptor)) {
    const Description *part = find(handle);
    isOk = isOk && part && part->isFinal;
    if (isOk)
      graph.operations.push_back(operation(*part, graph));
  }
  return graph;
}
