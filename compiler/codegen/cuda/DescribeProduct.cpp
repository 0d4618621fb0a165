#include "compiler/codegen/cuda/DescribeProduct.h"

#include "compiler/codegen/kernel/RegionFrame.h"
#include "compiler/passes/graph/fusion/LibraryProduct.h"

using namespace mlir;
using namespace tcc;
using namespace tcc::graph;
using fusion::LibraryProduct;
using fusion::StridedMatrix;

namespace tcc::cuda {

static exec::MatrixAttr makeMatrix(const StridedMatrix &matrix,
                                   uint32_t buffer) {
  MLIRContext *context = matrix.input.getContext();
  AffineMap place = makeSizeMap(
      {matrix.offset, matrix.batch, matrix.row, matrix.column}, context);
  return exec::MatrixAttr::get(context, buffer,
                               getElementTypeOrSelf(matrix.input), place);
}

/// A matrix in an input of the region.
static exec::MatrixAttr makeInput(const StridedMatrix &matrix) {
  return makeMatrix(matrix, cast<BlockArgument>(matrix.input).getArgNumber());
}

static exec::Activation getActivation(Operation *op) {
  if (!op)
    return exec::Activation::none;
  return isa<ReluOp>(op) ? exec::Activation::relu : exec::Activation::gelu_tanh;
}

exec::ProductAttr describeProduct(FusedOp region) {
  Block &body = region.getBody().front();
  Operation *anchor = codegen::getAnchor(region);
  if (!anchor || body.getTerminator()->getNumOperands() != 1)
    return {};
  std::optional<LibraryProduct> product = fusion::describeProduct(
      anchor, body.getTerminator()->getOperand(0),
      [](Value value) { return isa<BlockArgument>(value); });
  if (!product)
    return {};
  MLIRContext *context = region.getContext();
  auto makeOptional = [](const std::optional<StridedMatrix> &matrix) {
    return matrix ? makeInput(*matrix) : exec::MatrixAttr();
  };
  return exec::ProductAttr::get(
      context,
      makeSizeMap({product->batch, product->m, product->n, product->k},
                  context),
      makeInput(product->lhs), makeInput(product->rhs),
      makeMatrix(product->result, body.getNumArguments()),
      makeOptional(product->addend), makeOptional(product->bias),
      FloatAttr::get(Float64Type::get(context), product->scale),
      getActivation(product->activation));
}

} // namespace tcc::cuda
