//===- TensorProto.h - ONNX's tensor files ----------------------*- C++ -*-===//
//
// The fields of onnx.TensorProto that test data use, read without protobuf.
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
