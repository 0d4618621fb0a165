//===- Derivatives.h - Longer formulas of pointwise gradients ---*- C++ -*-===//
//
// What the table of Pointwise.td refers to: the gradient with respect to x,
// where the function's is dy.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_DIALECTS_GRAPH_OPS_DERIVATIVES_H
#define TCC_DIALECTS_GRAPH_OPS_DERIVATIVES_H

#include "dialects/graph/ops/TensorEmitter.h"

#include <numbers>

namespace tcc::graph {

/// max(x, other): at ties half of it if `other` has a gradient, too, and
/// nothing if it is a bound, as in PyTorch.
Expr passLarger(const Gradients &gradients, Expr x, Expr other, Expr dy);
/// The same of min(x, other).
Expr passSmaller(const Gradients &gradients, Expr x, Expr other, Expr dy);
Expr deriveSilu(Expr x, Expr dy);
/// The density of a standard normal distribution.
Expr normalDensity(Expr x);
Expr deriveGelu(Expr x, Expr dy);
Expr deriveMish(Expr x, Expr dy);
Expr deriveHardSigmoid(HardSigmoidOp op, Expr y, Expr dy);

} // namespace tcc::graph

#endif // TCC_DIALECTS_GRAPH_OPS_DERIVATIVES_H
