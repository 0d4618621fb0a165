//===- OnnxExport.h - Trained parameters in the ONNX model ------*- C++ -*-===//
#ifndef TCC_RUNTIME_DATA_ONNXEXPORT_H
#define TCC_RUNTIME_DATA_ONNXEXPORT_H

#include "runtime/train/Session.h"

namespace tcc::runtime {

/// Writes to `path` the ONNX model at `model`, of which the session's package
/// was made, with the session's parameters and buffers (see OnnxRewrite for
/// what else changes). Floats are rounded to the types that the model has.
/// Code::Usage where the model has not all of them, or with other shapes:
/// nothing is written then.
Status exportOnnx(const TrainingSession &session, const std::string &model,
                  const std::string &path);

/// Fails as `exportOnnx` would, but for what writing brings.
Status checkOnnx(const TrainingSession &session, const std::string &model);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_DATA_ONNXEXPORT_H
