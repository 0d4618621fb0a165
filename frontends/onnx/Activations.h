//===- Activations.h - Functions that nodes name ----------------*- C++ -*-===//
#ifndef TCC_FRONTENDS_ONNX_ACTIVATIONS_H
#define TCC_FRONTENDS_ONNX_ACTIVATIONS_H

#include "frontends/onnx/Node.h"

namespace tcc::onnx_import {

struct ActivationRow;

struct Activation {
  const ActivationRow *row;
  double alpha, beta;
};

/// The activations of all directions, one after the other, from the node's
/// attributes. Alphas and betas are listed for the functions that take them.
llvm::SmallVector<Activation>
readActivations(Node &node, llvm::ArrayRef<llvm::StringRef> defaults,
                int64_t directions);

/// The function of x, clipped if the node says so.
mlir::Value applyActivation(Node &node, const Activation &activation,
                            mlir::Value x);

/// The function of x that attribute "activation" of an operator that
/// onnxruntime fused names; x if there is none. The parameters are those that
/// the function's own operator has, in the order of their names.
mlir::Value applyFusedActivation(Node &node, llvm::ArrayRef<double> parameters,
                                 mlir::Value x);

} // namespace tcc::onnx_import

#endif // TCC_FRONTENDS_ONNX_ACTIVATIONS_H
