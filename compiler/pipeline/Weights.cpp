#include "compiler/pipeline/Weights.h"

#include "compiler/package/EntryBuilder.h"
#include "runtime/package/StateDict.h"
#include <algorithm>
#include <cstring>

namespace tcc {

using runtime::Code;
using runtime::makeError;
using runtime::Status;
using runtime::StoredTensor;

/// The rows of a matrix of `shape` as columns.
static std::vector<char> transpose(llvm::ArrayRef<char> bytes,
                                   llvm::ArrayRef<int64_t> shape) {
  std::vector<char> result(bytes.size());
  int64_t rows = shape[0], columns = shape[1];
  int64_t size = bytes.empty() ? 0 : int64_t(bytes.size()) / (rows * columns);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      std::memcpy(&result[(j * rows + i) * size],
                  &bytes[(i * columns + j) * size], size);
  return result;
}

static Status replaceWeight(Weight &weight, const StoredTensor &tensor,
                            bool isTransposed,
                            std::shared_ptr<const void> owner) {
  if (package::getDType(weight.type.getElementType()) != tensor.dtype)
    return makeError(Code::Usage, "weight '", tensor.name,
                     "' has another element type than in the model");
  llvm::SmallVector<int64_t> shape(tensor.shape.begin(), tensor.shape.end());
  if (isTransposed)
    std::reverse(shape.begin(), shape.end());
  if (llvm::ArrayRef(shape) != weight.type.getShape())
    return makeError(Code::Usage, "weight '", tensor.name,
                     "' has another shape than in the model");
  llvm::ArrayRef<char> bytes(
      reinterpret_cast<const char *>(tensor.bytes.data()), tensor.bytes.size());
  if (isTransposed) {
    auto own =
        std::make_shared<std::vector<char>>(transpose(bytes, tensor.shape));
    bytes = *own;
    owner = own;
  }
  if (weight.structural && bytes != weight.bytes)
    return makeError(Code::BadData, "weight '", tensor.name,
                     "' is a structural constant: it decided a shape, a branch "
                     "or a pattern when the model was read");
  weight.bytes = bytes;
  weight.owner = std::move(owner);
  return Status();
}

static runtime::Result<runtime::Aliases> findAliases(const Model &model) {
  for (const MetadataEntry &entry : model.metadata)
    if (entry.key == runtime::kAliasesKey)
      return runtime::parseAliases(entry.value);
  return runtime::Aliases();
}

Status replaceWeights(Model &model, const std::string &path) {
  runtime::Result<runtime::Aliases> aliases = findAliases(model);
  if (!aliases.ok())
    return aliases.takeStatus();
  runtime::Result<runtime::SafetensorsFile> opened =
      runtime::SafetensorsFile::open(path);
  if (!opened.ok())
    return opened.takeStatus();
  auto file =
      std::make_shared<const runtime::SafetensorsFile>(std::move(*opened));
  auto tensors = runtime::readStateDict(file->tensors(), *aliases, path);
  if (!tensors.ok())
    return tensors.takeStatus();
  for (const StoredTensor &tensor : *tensors) {
    Weight *transposed = model.weights.findTranspose(tensor.name);
    Weight *weight = transposed ? transposed : model.weights.find(tensor.name);
    if (!weight)
      return makeError(Code::Usage, "'", path, "' has '", tensor.name,
                       "', which is no weight of the model");
    if (Status status =
            replaceWeight(*weight, tensor, transposed != nullptr, file);
        !status.ok())
      return status;
  }
  return Status();
}

} // namespace tcc
