#include "dialects/graph/Phases.h"

#include "mlir/IR/BuiltinAttributes.h"

using namespace mlir;
using tcc::format::Phase;

namespace tcc {

static std::optional<Phase> findPhase(StringRef name) {
  for (Phase phase : format::EnumValuesPhase())
    if (name == format::nameOf(phase))
      return phase;
  return std::nullopt;
}

/// The phase of a location itself.
static std::optional<Phase> getOwnPhase(Location location) {
  auto fused = dyn_cast<FusedLoc>(location);
  if (!fused)
    return std::nullopt;
  auto name = dyn_cast_if_present<StringAttr>(fused.getMetadata());
  return name ? findPhase(name.getValue()) : std::nullopt;
}

std::optional<Phase> getPhase(Location location) {
  std::optional<Phase> found;
  location->walk([&](Location part) {
    found = getOwnPhase(part);
    return found ? WalkResult::interrupt() : WalkResult::advance();
  });
  return found;
}

Location withoutPhase(Location location) {
  if (!getOwnPhase(location))
    return location;
  auto fused = cast<FusedLoc>(location);
  return FusedLoc::get(fused.getContext(), fused.getLocations());
}

Location withPhase(Location location, Phase phase) {
  MLIRContext *context = location.getContext();
  return FusedLoc::get(context, withoutPhase(location),
                       StringAttr::get(context, format::nameOf(phase)));
}

} // namespace tcc
