#include "frontends/onnx/Node.h"
#include "frontends/onnx/Ops.h"

namespace tcc::onnx_import {

llvm::ArrayRef<OpRow> getControlOps() { return {}; }

} // namespace tcc::onnx_import
