#include "runtime/package/VerifyLibrary.h"

#include "runtime/package/Alignment.h"
#include "runtime/package/DType.h"
#include "runtime/package/SizeExpr.h"

#include <algorithm>

using namespace tcc;
using namespace tcc::runtime;

using Sizes = flatbuffers::Vector<flatbuffers::Offset<format::SizeExpr>>;

static constexpr size_t kMaxSpatialAxes = 3;

/// `count` sizes of the symbols alone.
static bool areSizes(const Sizes &sizes, size_t count,
                     const format::Program &program) {
  size_t symbols = program.symbols() ? program.symbols()->size() : 0;
  return sizes.size() == count &&
         std::all_of(sizes.begin(), sizes.end(),
                     [&](const format::SizeExpr *size) {
                       return isWellFormed(*size, symbols);
                     });
}

static bool isFloat(DType dtype) {
  return isDType(dtype) && traitsOf(dtype).kind == DTypeKind::Float;
}

/// The operands have one type, and what is added the result's.
template <typename Place>
static bool areTypesWhole(const Place &lhs, const Place &rhs,
                          const Place &result, const Place *addend,
                          const Place *bias) {
  for (const Place *place : {&lhs, &rhs, &result, addend, bias})
    if (place && !isFloat(place->dtype()))
      return false;
  return lhs.dtype() == rhs.dtype() &&
         (!addend || addend->dtype() == result.dtype()) &&
         (!bias || bias->dtype() == result.dtype());
}

/// Only f32 is rounded to tf32.
template <typename Source>
static bool isPrecisionWhole(const Source &source, DType operands) {
  return !source.tf32() || operands == DType::f32;
}

/// What gelu is of, stored or, for a gradient of it alone, read.
static bool isSumWhole(const format::Product &product) {
  if (product.activation() == format::Activation::gelu_tanh_gradient &&
      (!product.sum() || product.addend() || product.bias()))
    return false;
  return !product.sum() || product.sum()->dtype() == product.result()->dtype();
}

/// Nothing but an addend is behind a product with sums along its depth.
static bool areDepthSumsWhole(const format::Product &product) {
  return !product.depth_sums() ||
         (product.depth_sums()->dtype() == product.result()->dtype() &&
          product.scale() == 1 && !product.bias() && !product.sum() &&
          product.activation() == format::Activation::none);
}

static bool isProduct(const format::Product &product,
                      const format::Program &program) {
  for (const format::Matrix *matrix :
       {product.lhs(), product.rhs(), product.result(), product.addend(),
        product.bias(), product.sum(), product.depth_sums()})
    if (matrix && !areSizes(*matrix->place(), 4, program))
      return false;
  return isSumWhole(product) && areDepthSumsWhole(product) &&
         areSizes(*product.extents(), 4, program) &&
         product.activation() <= format::Activation::MAX &&
         isPrecisionWhole(product, product.lhs()->dtype()) &&
         areTypesWhole(*product.lhs(), *product.rhs(), *product.result(),
                       product.addend(), product.bias());
}

static bool isConvolution(const format::Convolution &convolution,
                          const format::Program &program) {
  size_t spatial = convolution.strides()->size();
  if (spatial < 1 || spatial > kMaxSpatialAxes)
    return false;
  for (auto *list : {convolution.pad_low(), convolution.pad_high(),
                     convolution.strides(), convolution.dilations()})
    if (list->size() != spatial || !isAligned<int64_t>(*list))
      return false;
  for (const format::Image *image :
       {convolution.x(), convolution.filter(), convolution.result(),
        convolution.addend(), convolution.bias()})
    if (image && !areSizes(*image->place(), 1 + 2 * (2 + spatial), program))
      return false;
  return convolution.activation() <= format::Activation::relu &&
         convolution.kind() <= format::ConvolutionKind::MAX &&
         isPrecisionWhole(convolution, convolution.x()->dtype()) &&
         areTypesWhole(*convolution.x(), *convolution.filter(),
                       *convolution.result(), convolution.addend(),
                       convolution.bias());
}

Status runtime::verifyForLibrary(const format::Program &program,
                                 const format::Kernel &kernel) {
  std::string_view name = kernel.symbol()->string_view();
  if (kernel.product() && !isProduct(*kernel.product(), program))
    return makeError(Code::BadData, "kernel '", name, "' is no matrix product");
  if (kernel.convolution() && !isConvolution(*kernel.convolution(), program))
    return makeError(Code::BadData, "kernel '", name, "' is no convolution");
  return Status();
}

bool runtime::hasBuffersForLibrary(const format::Kernel &kernel,
                                   size_t buffers) {
  auto lies = [&](auto *...places) {
    return ((!places || places->buffer() < buffers) && ...);
  };
  const format::Product *product = kernel.product();
  const format::Convolution *convolution = kernel.convolution();
  return (!product || lies(product->lhs(), product->rhs(), product->result(),
                           product->addend(), product->bias(), product->sum(),
                           product->depth_sums())) &&
         (!convolution ||
          lies(convolution->x(), convolution->filter(), convolution->result(),
               convolution->addend(), convolution->bias()));
}
