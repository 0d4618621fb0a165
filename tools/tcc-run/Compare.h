//===- Compare.h - Compares outputs with expected tensors -------*- C++ -*-===//
#ifndef TCC_TOOLS_TCCRUN_COMPARE_H
#define TCC_TOOLS_TCCRUN_COMPARE_H

#include "runtime/executor/Context.h"
#include "runtime/package/Tensor.h"
#include "tools/tcc-run/Options.h"

namespace tcc::tools {

struct Comparison {
  bool ok = true;
  double maxDifference = 0; ///< largest |d|; infinite where only one is finite
  std::string problem;      ///< the worst element, or how the types differ
};

/// Fails where |d| > atol * max|expected| + rtol * |expected|. NaN equals NaN,
/// an infinity itself; integers and booleans are compared exactly. Of bf16 also
/// with f32, as which it is written to .npy files.
Comparison compare(const runtime::TensorView &found,
                   const runtime::Tensor &expected, const Tolerance &tolerance);

} // namespace tcc::tools

#endif // TCC_TOOLS_TCCRUN_COMPARE_H
