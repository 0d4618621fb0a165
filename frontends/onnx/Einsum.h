//===- Einsum.h - Einstein summation ----------------------------*- C++ -*-===//
#ifndef TCC_FRONTENDS_ONNX_EINSUM_H
#define TCC_FRONTENDS_ONNX_EINSUM_H

#include "frontends/onnx/Node.h"

namespace tcc::onnx_import {

void importEinsum(Node &node);

} // namespace tcc::onnx_import

#endif // TCC_FRONTENDS_ONNX_EINSUM_H
