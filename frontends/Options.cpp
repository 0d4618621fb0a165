#include "frontends/Frontend.h"

#include "llvm/ADT/StringExtras.h"

using llvm::StringRef;

namespace tcc {

std::optional<DimBinding> parseDimBinding(StringRef text) {
  auto [name, value] = text.rsplit('=');
  auto [low, high] = value.split("..");
  if (!value.contains(".."))
    high = low;
  DimBinding binding{name.str(), 0, 0};
  if (name.empty() || low.getAsInteger(10, binding.min) ||
      high.getAsInteger(10, binding.max) || binding.min < 0 ||
      binding.max < binding.min)
    return std::nullopt;
  return binding;
}

std::optional<InputShape> parseInputShape(StringRef text) {
  auto [name, value] = text.rsplit('=');
  InputShape shape{name.str(), {}};
  if (name.empty() || !text.contains('='))
    return std::nullopt;
  llvm::SmallVector<StringRef> parts;
  value.split(parts, 'x', -1, /*KeepEmpty=*/true);
  for (StringRef part : parts) {
    int64_t extent;
    if (value.empty())
      break;
    if (part.getAsInteger(10, extent) || extent < 0)
      return std::nullopt;
    shape.extents.push_back(extent);
  }
  return shape;
}

} // namespace tcc
