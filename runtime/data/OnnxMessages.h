//===- OnnxMessages.h - Fields of ONNX's messages ---------------*- C++ -*-===//
//
// The fields of onnx.proto that the runtime's tools know, read with protozero,
// which throws protozero::exception at bytes that are no message: callers catch
// it and name the file.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_RUNTIME_DATA_ONNXMESSAGES_H
#define TCC_RUNTIME_DATA_ONNXMESSAGES_H

#include "runtime/package/DType.h"

#include <cstdint>
#include <protozero/pbf_message.hpp>
#include <vector>

namespace tcc::runtime::onnx {

enum class ModelField : uint32_t { graph = 7, functions = 25 };
enum class FunctionField : uint32_t { node = 7 };
enum class GraphField : uint32_t {
  node = 1,
  initializer = 5,
  sparse_initializer = 15,
};
enum class NodeField : uint32_t { output = 2, op_type = 4, attribute = 5 };
enum class AttributeField : uint32_t {
  t = 5,
  g = 6,
  tensors = 10,
  graphs = 11,
  sparse_tensor = 22,
  sparse_tensors = 23,
};
enum class SparseField : uint32_t { values = 1, indices = 2 };
enum class TensorField : uint32_t {
  dims = 1,
  data_type = 2,
  float_data = 4,
  int32_data = 5,
  int64_data = 7,
  name = 8,
  raw_data = 9,
  double_data = 10,
  uint64_data = 11,
  external_data = 13,
  data_location = 14,
};
enum class EntryField : uint32_t { key = 1, value = 2 };

/// The wire types that these fields have; one of another is no such field.
inline constexpr auto kVarint = protozero::pbf_wire_type::varint;
inline constexpr auto kBytes = protozero::pbf_wire_type::length_delimited;

using Model = protozero::pbf_message<ModelField>;
using Function = protozero::pbf_message<FunctionField>;
using Graph = protozero::pbf_message<GraphField>;
using Node = protozero::pbf_message<NodeField>;
using Attribute = protozero::pbf_message<AttributeField>;
using SparseTensor = protozero::pbf_message<SparseField>;
using TensorProto = protozero::pbf_message<TensorField>;
using Entry = protozero::pbf_message<EntryField>;

/// What a TensorProto says of itself; views into the message.
struct TensorHeader {
  std::string_view name;
  std::vector<int64_t> shape;
  uint64_t dataType = 0;     ///< onnx.TensorProto.DataType
  bool isExternal = false;   ///< its data lie in another file
  std::string_view location; ///< of that file, from the model's folder
  std::string_view offset = {}, length = {}; ///< decimal; empty: not given

  /// The type that the runtime keeps elements in; nothing where it has none.
  /// Floats of 8 and 4 bits are kept as their bits, narrow integers as i8 or
  /// u8.
  std::optional<DType> dtype() const;
  /// What an element takes in the message: 2 and 4 lie side by side.
  unsigned bitsOfElement() const;
};

std::string_view viewOf(protozero::data_view view);

TensorHeader readTensorHeader(protozero::data_view message);

} // namespace tcc::runtime::onnx

#endif // TCC_RUNTIME_DATA_ONNXMESSAGES_H
