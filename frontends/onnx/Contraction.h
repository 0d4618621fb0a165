//===- Contraction.h - Matrix products of ONNX ------------------*- C++ -*-===//
#ifndef TCC_FRONTENDS_ONNX_CONTRACTION_H
#define TCC_FRONTENDS_ONNX_CONTRACTION_H

#include "frontends/onnx/Node.h"

namespace tcc::onnx_import {

void importEinsum(Node &node);

} // namespace tcc::onnx_import

#endif // TCC_FRONTENDS_ONNX_CONTRACTION_H
