#include "compiler/pipeline/Weights.h"

#include "compiler/package/EntryBuilder.h"
#include "runtime/data/Safetensors.h"
#include <algorithm>

namespace tcc {

using runtime::Code;
using runtime::makeError;
using runtime::Status;
using runtime::StoredTensor;

static Status replaceWeight(Weight &weight, const StoredTensor &tensor,
                            std::shared_ptr<const void> owner) {
  if (package::getDType(weight.type.getElementType()) != tensor.dtype)
    return makeError(Code::Usage, "weight '", tensor.name,
                     "' has another element type than in the model");
  if (llvm::ArrayRef<int64_t>(tensor.shape) != weight.type.getShape())
    return makeError(Code::Usage, "weight '", tensor.name,
                     "' has another shape than in the model");
  llvm::ArrayRef<char> bytes(
      reinterpret_cast<const char *>(tensor.bytes.data()), tensor.bytes.size());
  if (weight.structural && bytes != weight.bytes)
    return makeError(Code::BadData, "weight '", tensor.name,
                     "' is a structural constant: it decided a shape, a branch "
                     "or a pattern when the model was read");
  weight.bytes = bytes;
  weight.owner = std::move(owner);
  return Status();
}

Status replaceWeights(WeightStore &weights, const std::string &path) {
  runtime::Result<runtime::SafetensorsFile> opened =
      runtime::SafetensorsFile::open(path);
  if (!opened.ok())
    return opened.takeStatus();
  auto file =
      std::make_shared<const runtime::SafetensorsFile>(std::move(*opened));
  for (const StoredTensor &tensor : file->tensors()) {
    Weight *weight = weights.find(tensor.name);
    if (!weight)
      return makeError(Code::Usage, "'", path, "' has '", tensor.name,
                       "', which is no weight of the model");
    if (Status status = replaceWeight(*weight, tensor, file); !status.ok())
      return status;
  }
  return Status();
}

} // namespace tcc
