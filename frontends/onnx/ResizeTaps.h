//===- ResizeTaps.h - What elements of a resized axis are made of -*- C++ -*-=//
#ifndef TCC_FRONTENDS_ONNX_RESIZETAPS_H
#define TCC_FRONTENDS_ONNX_RESIZETAPS_H

#include "frontends/onnx/Node.h"

namespace tcc::onnx_import {

/// More than this many result elements of an axis, or taps, are refused.
constexpr int64_t kMaxResized = 1 << 16, kMaxTaps = 64;

struct ResizeOptions {
  std::string mode, coordinates, nearest;
  double cubicA, extrapolation;
  bool isAntialiased, excludesOutside;

  double getSupport() const { return mode == "cubic" ? 2 : 1; }
  bool isCropped() const { return coordinates == "tf_crop_and_resize"; }
  /// True if coordinates depend on the length of the result. Where a scale
  /// makes that a fraction, ONNX's text, onnxruntime and PyTorch take its
  /// floor, and ONNX's reference and cases do not.
  bool usesLength() const {
    return isCropped() || coordinates == "align_corners";
  }
};

/// One resized axis. The values are f64 scalars.
struct AxisResize {
  int64_t axis;
  mlir::Value scale;              // result / input, as given or from the sizes
  SizeElement extent;             // of the result
  mlir::Value cropStart, cropEnd; // tf_crop_and_resize
  std::optional<double> known;    // the scale

  bool isKept(const ResizeOptions &options) const {
    return known == 1 && !options.isCropped();
  }
};

/// For each result element, the input elements that make it: [result, tap].
struct Taps {
  mlir::AffineExpr count;
  mlir::Value index, weight, // weight is null if there is one tap
      isOutside;             // [result, 1]
};

/// An f64 scalar.
mlir::Value real(Node &node, double value);
/// The largest integers that are not above x, as i64.
mlir::Value floorToIndex(Node &node, mlir::Value x);

/// The taps of an axis, computed in the module.
Taps computeTaps(Node &node, const ResizeOptions &options,
                 const AxisResize &resize, mlir::AffineExpr inExtent,
                 mlir::AffineExpr outExtent);

} // namespace tcc::onnx_import

#endif // TCC_FRONTENDS_ONNX_RESIZETAPS_H
