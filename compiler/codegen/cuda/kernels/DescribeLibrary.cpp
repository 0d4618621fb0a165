#include "compiler/codegen/cuda/kernels/DescribeLibrary.h"

#include "compiler/codegen/region/RegionFrame.h"
#include "compiler/passes/graph/fusion/LibraryConvolution.h"
#include "compiler/passes/graph/fusion/LibraryProduct.h"

using namespace mlir;
using namespace tcc;
using namespace tcc::graph;
using fusion::LibraryConvolution;
using fusion::LibraryProduct;
using fusion::StridedImage;
using fusion::StridedMatrix;

namespace tcc::cuda {

static exec::Activation getActivation(Operation *op) {
  if (!op)
    return exec::Activation::none;
  if (isa<GeluTanhGradientOp>(op))
    return exec::Activation::gelu_tanh_gradient;
  return isa<ReluOp>(op) ? exec::Activation::relu : exec::Activation::gelu_tanh;
}

/// The position of the buffer that `input` lies in; results follow inputs.
static uint32_t getPosition(Value input, FusedOp region) {
  if (auto argument = dyn_cast<BlockArgument>(input))
    return argument.getArgNumber();
  ValueRange results = region.getBody().front().getTerminator()->getOperands();
  auto found = llvm::find(results, input);
  return region.getBody().getNumArguments() +
         std::distance(results.begin(), found);
}

static exec::MatrixAttr makeMatrix(const StridedMatrix &matrix,
                                   FusedOp region) {
  MLIRContext *context = region.getContext();
  AffineMap place = makeSizeMap(
      {matrix.offset, matrix.batch, matrix.row, matrix.column}, context);
  return exec::MatrixAttr::get(context, getPosition(matrix.input, region),
                               getElementTypeOrSelf(matrix.input), place);
}

static exec::ProductAttr makeProduct(const LibraryProduct &product,
                                     FusedOp region) {
  MLIRContext *context = region.getContext();
  auto makeOptional = [&](const std::optional<StridedMatrix> &matrix) {
    return matrix ? makeMatrix(*matrix, region) : exec::MatrixAttr();
  };
  return exec::ProductAttr::get(
      context,
      makeSizeMap({product.batch, product.m, product.n, product.k}, context),
      makeMatrix(product.lhs, region), makeMatrix(product.rhs, region),
      makeMatrix(product.result, region), makeOptional(product.addend),
      makeOptional(product.bias),
      FloatAttr::get(Float64Type::get(context), product.scale),
      getActivation(product.activation), product.tf32,
      makeOptional(product.sum), makeOptional(product.depthSums),
      product.sumsLhs);
}

static exec::ImageAttr makeImage(const StridedImage &image, FusedOp region) {
  MLIRContext *context = region.getContext();
  SmallVector<AffineExpr> place = {image.offset};
  llvm::append_range(place, image.extents);
  llvm::append_range(place, image.strides);
  return exec::ImageAttr::get(context, getPosition(image.input, region),
                              getElementTypeOrSelf(image.input),
                              makeSizeMap(place, context));
}

static exec::ConvolutionAttr makeConvolution(const LibraryConvolution &conv,
                                             FusedOp region) {
  auto makeOptional = [&](const std::optional<StridedImage> &image) {
    return image ? makeImage(*image, region) : exec::ImageAttr();
  };
  Builder builder(region.getContext());
  return exec::ConvolutionAttr::get(
      region.getContext(),
      conv.isFilterGradient ? exec::ConvolutionKind::filter_gradient
                            : exec::ConvolutionKind::forward,
      makeImage(conv.x, region), makeImage(conv.filter, region),
      makeImage(conv.result, region), makeOptional(conv.addend),
      makeOptional(conv.bias), builder.getDenseI64ArrayAttr(conv.padLow),
      builder.getDenseI64ArrayAttr(conv.padHigh),
      builder.getDenseI64ArrayAttr(conv.strides),
      builder.getDenseI64ArrayAttr(conv.dilations),
      getActivation(conv.activation), conv.tf32);
}

void describeForLibrary(FusedOp region, KernelInfo &info) {
  Block &body = region.getBody().front();
  Operation *anchor = codegen::getAnchor(region);
  SmallVector<Value> results(body.getTerminator()->getOperands());
  if (!anchor || results.empty())
    return;
  auto isInput = [](Value value) { return isa<BlockArgument>(value); };
  if (auto product = fusion::describeProduct(anchor, results, isInput))
    info.product = makeProduct(*product, region);
  else if (results.size() > 1)
    return;
  else if (auto conv =
               fusion::describeConvolution(anchor, results.front(), isInput))
    info.convolution = makeConvolution(*conv, region);
}

} // namespace tcc::cuda
