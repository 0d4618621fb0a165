//===- TensorProto.h - ONNX's tensor files ----------------------*- C++ -*-===//
//
// A bounded reader of the fields of onnx.TensorProto that test data uses, so
// that the runtime's tools build without protobuf. Models are never read here.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_RUNTIME_DATA_TENSORPROTO_H
#define TCC_RUNTIME_DATA_TENSORPROTO_H

#include "runtime/package/Tensor.h"

namespace tcc::runtime {

/// Parses a serialized TensorProto with its data inline; `name` is for errors.
Result<Tensor> parseTensorProto(std::span<const std::byte> bytes,
                                const std::string &name);
Result<Tensor> readTensorProto(const std::string &path);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_DATA_TENSORPROTO_H
