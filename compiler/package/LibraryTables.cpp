#include "compiler/package/LibraryTables.h"

#include "compiler/package/EntryBuilder.h"
#include "compiler/package/Enums.h"

using namespace mlir;

namespace tcc::package {

static auto buildSizes(flatbuffers::FlatBufferBuilder &fbb, AffineMap sizes) {
  std::vector<flatbuffers::Offset<format::SizeExpr>> tables;
  for (AffineExpr size : sizes.getResults())
    tables.push_back(buildSize(fbb, size));
  return fbb.CreateVector(tables);
}

static flatbuffers::Offset<format::Matrix>
buildMatrix(flatbuffers::FlatBufferBuilder &fbb, exec::MatrixAttr matrix) {
  if (!matrix)
    return {};
  auto place = buildSizes(fbb, matrix.getPlace());
  return format::CreateMatrix(fbb, matrix.getBuffer(),
                              getDType(matrix.getElementType()), place);
}

flatbuffers::Offset<format::Product>
buildProduct(flatbuffers::FlatBufferBuilder &fbb, exec::ProductAttr product) {
  if (!product)
    return {};
  auto extents = buildSizes(fbb, product.getExtents());
  auto lhs = buildMatrix(fbb, product.getLhs());
  auto rhs = buildMatrix(fbb, product.getRhs());
  auto result = buildMatrix(fbb, product.getResult());
  auto addend = buildMatrix(fbb, product.getAddend());
  auto bias = buildMatrix(fbb, product.getBias());
  auto sum = buildMatrix(fbb, product.getSum());
  auto depthSums = buildMatrix(fbb, product.getDepthSums());
  return format::CreateProduct(
      fbb, extents, lhs, rhs, result, addend, bias,
      product.getScale().getValueAsDouble(), toFormat(product.getActivation()),
      product.getTf32(), sum, depthSums, product.getSumsLhs());
}

static flatbuffers::Offset<format::Image>
buildImage(flatbuffers::FlatBufferBuilder &fbb, exec::ImageAttr image) {
  if (!image)
    return {};
  auto place = buildSizes(fbb, image.getPlace());
  return format::CreateImage(fbb, image.getBuffer(),
                             getDType(image.getElementType()), place);
}

flatbuffers::Offset<format::Convolution>
buildConvolution(flatbuffers::FlatBufferBuilder &fbb,
                 exec::ConvolutionAttr convolution) {
  if (!convolution)
    return {};
  auto buildList = [&](DenseI64ArrayAttr values) {
    return fbb.CreateVector(values.asArrayRef().data(), values.size());
  };
  auto x = buildImage(fbb, convolution.getX());
  auto filter = buildImage(fbb, convolution.getFilter());
  auto result = buildImage(fbb, convolution.getResult());
  auto addend = buildImage(fbb, convolution.getAddend());
  auto bias = buildImage(fbb, convolution.getBias());
  auto padLow = buildList(convolution.getPadLow());
  auto padHigh = buildList(convolution.getPadHigh());
  auto strides = buildList(convolution.getStrides());
  auto dilations = buildList(convolution.getDilations());
  return format::CreateConvolution(
      fbb, x, filter, result, addend, bias, padLow, padHigh, strides, dilations,
      toFormat(convolution.getActivation()), convolution.getTf32(),
      toFormat(convolution.getKind()));
}

} // namespace tcc::package
