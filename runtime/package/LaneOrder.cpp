#include "runtime/package/LaneOrder.h"

#include <algorithm>

using namespace tcc::runtime;

bool LaneOrder::wait(size_t lane, uint32_t event) {
  auto recorded = events.find(event);
  if (recorded == events.end())
    return false;
  for (size_t i = 0; i < seen.size(); ++i)
    seen[lane][i] = std::max(seen[lane][i], recorded->second[i]);
  return true;
}

std::optional<size_t> LaneOrder::findUnjoined() const {
  for (size_t i = 1; i < seen.size(); ++i)
    if (seen[0][i] < seen[i][i])
      return i;
  return std::nullopt;
}
