#include "frontends/pt2/Types.h"

#include "frontends/aten/Call.h"

namespace tcc::pt2 {

std::optional<int64_t> getScalarType(std::optional<int64_t> number) {
  // From BYTE on the schema counts one further; BFLOAT16 follows BOOL.
  if (number && *number >= 1 && *number <= 12)
    return *number - 1;
  if (number == 13)
    return 15;
  return std::nullopt;
}

mlir::Type getElementType(std::optional<int64_t> number,
                          mlir::MLIRContext *context) {
  auto scalarType = getScalarType(number);
  return scalarType ? aten::getElementType(*scalarType, context) : nullptr;
}

} // namespace tcc::pt2
