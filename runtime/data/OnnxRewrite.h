//===- OnnxRewrite.h - An ONNX model with other values ----------*- C++ -*-===//
#ifndef TCC_RUNTIME_DATA_ONNXREWRITE_H
#define TCC_RUNTIME_DATA_ONNXREWRITE_H

#include "runtime/base/MappedFile.h"
#include "runtime/package/Tensor.h"

#include <deque>
#include <functional>
#include <map>

namespace tcc::runtime {

/// A tensor that a model's file has a value of.
struct OnnxTensor {
  std::string_view name;
  DType dtype;
  std::span<const int64_t> shape;
};

/// The value that a tensor gets: row-major elements of its type and shape.
struct OnnxValue {
  std::span<const std::byte> bytes;
  Tensor owned = {}; ///< where nothing else keeps the bytes
};

/// Says what a tensor becomes; nothing where it stays as it is.
using ReplaceOnnxTensor =
    std::function<Result<std::optional<OnnxValue>>(const OnnxTensor &tensor)>;

/// The file of an ONNX model with other values of tensors: initializers of the
/// model's graph, and what its Constant nodes give, under the names of their
/// outputs. All else stays byte for byte as it is, but that values in typed
/// fields become raw ones. Values in other files stay in such.
class OnnxRewrite {
public:
  /// Reads the model at `model` and asks for each tensor with elements of a
  /// type that the runtime has. Code::BadData where it is no model, or has
  /// external data outside its folder or not all of them; the first failure of
  /// `replace` is returned.
  static Result<OnnxRewrite> open(const std::string &model,
                                  const ReplaceOnnxTensor &replace);
  OnnxRewrite(OnnxRewrite &&) = default;

  /// Writes all of it, files of external data beside `path` first, each whole
  /// or not at all. Code::Usage where one of those would be the model's own.
  /// What `replace` gave without owning it must be there still.
  Status write(const std::string &path) const;

private:
  class Rewriter;

  /// A file of external data, and what of its bytes becomes others, by where
  /// these begin.
  struct External {
    MappedFile file;
    std::map<uint64_t, std::span<const std::byte>> changes;
  };

  OnnxRewrite() = default;

  std::string model;
  MappedFile file;
  std::vector<std::span<const std::byte>> pieces; ///< of the model's new file
  std::deque<std::string> heads;                  ///< pieces of its own
  std::deque<Tensor> values;                      ///< likewise
  std::map<std::string, External> externals;      ///< by location
};

} // namespace tcc::runtime

#endif // TCC_RUNTIME_DATA_ONNXREWRITE_H
