#include "frontends/WeightStore.h"

using namespace mlir;

namespace tcc {

int64_t getElementByteSize(Type elementType) {
  return (elementType.getIntOrFloatBitWidth() + 7) / 8;
}

int64_t getByteSize(RankedTensorType type) {
  return type.getNumElements() * getElementByteSize(type.getElementType());
}

Weight &WeightStore::add(Weight weight) {
  auto [entry, isNew] = byName.try_emplace(weight.name, nullptr);
  if (isNew)
    entry->second = &weights.emplace_back(std::move(weight));
  return *entry->second;
}

Weight *WeightStore::find(llvm::StringRef name) { return byName.lookup(name); }

const Weight *WeightStore::find(llvm::StringRef name) const {
  return byName.lookup(name);
}

Weight *WeightStore::findTranspose(llvm::StringRef name) {
  if (find(name))
    return nullptr;
  for (Weight &weight : weights)
    if (weight.sources.size() == 1 && weight.sources.front() == name &&
        weight.type.getRank() == 2)
      return &weight;
  return nullptr;
}

} // namespace tcc
