#include "runtime/devices/cuda/WorkName.h"

#include "runtime/package/DType.h"

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::runtime::cuda;

/// "2x3x4"
static std::string join(std::span<const int64_t> values) {
  std::string text;
  for (int64_t value : values)
    text += concat(text.empty() ? "" : "x", value);
  return text;
}

/// Type, strides and alignment.
static std::string name(const StridedMatrix &matrix) {
  int64_t strides[] = {matrix.batch, matrix.row, matrix.column};
  return concat(traitsOf(matrix.dtype).name, "[", join(strides), "]@",
                matrix.alignment);
}

static std::string name(const StridedImage &image) {
  return concat(traitsOf(image.dtype).name, "[", join(image.extents), ":",
                join(image.strides), "]@", image.alignment);
}

/// What follows the sums.
template <typename Work> static std::string nameRest(const Work &work) {
  std::string text;
  if (work.addend)
    text += concat(" + ", name(*work.addend));
  if (work.hasBias)
    text += " + bias";
  if (work.activation != format::Activation::none)
    text += concat(" ", format::EnumNameActivation(work.activation));
  return text + (work.tf32 ? " tf32" : "");
}

std::string cuda::nameWork(const MatrixProduct &product) {
  int64_t extents[] = {product.batch, product.m, product.n, product.k};
  char scale[32];
  std::snprintf(scale, sizeof(scale), "%.17g", product.scale);
  return concat("product ", join(extents), ": ", scale, " * ",
                name(product.lhs), " * ", name(product.rhs), nameRest(product),
                " -> ", name(product.result),
                product.sum ? concat(", ", name(*product.sum)) : "",
                !product.depthSums ? ""
                : product.sumsLhs  ? ", sums of lhs"
                                   : ", sums of rhs");
}

std::string cuda::nameWork(const Convolution &convolution) {
  return concat(format::EnumNameConvolutionKind(convolution.kind),
                " convolution: ", name(convolution.x), " * ",
                name(convolution.filter), " strides ",
                join(convolution.strides), " dilations ",
                join(convolution.dilations), " pads ", join(convolution.padLow),
                ":", join(convolution.padHigh), nameRest(convolution), " -> ",
                name(convolution.result));
}
