#include "tools/tcc-run/trace/ArenaCurve.h"

#include "runtime/package/Commands.h"
#include "tools/cli/MemoryUse.h"
#include "tools/tcc-run/ArenaUse.h"

using namespace tcc;
using namespace tcc::tools;

/// Commands have their numbers in the order of forEachCommand.
ArenaCurve tools::makeArenaCurve(const format::Entry &entry) {
  ArenaCurve curve;
  std::vector<int64_t> live = getLiveBytes(getArenaUse(entry));
  const auto &own = *entry.body()->commands();
  uint32_t number = 0;
  size_t place = 0;
  runtime::forEachCommand(*entry.body(), [&](const format::Command &command) {
    if (place < own.size() && &command == own[uint32_t(place)])
      curve[number] = live[2 * place++];
    ++number;
  });
  return curve;
}
