#include "tools/tcc-run/trace/ArenaCurve.h"

#include "runtime/package/Commands.h"
#include "tools/tcc-run/ArenaUse.h"

#include <algorithm>

using namespace tcc;
using namespace tcc::tools;

/// The command and those inside it.
static uint32_t countCommands(const format::Command &command) {
  uint32_t count = 1;
  runtime::forEachBlock(command, [&](const format::Block &block) {
    for (const format::Command *inner : *block.commands())
      count += countCommands(*inner);
  });
  return count;
}

/// The bytes that are live at each position of the entry.
static std::vector<int64_t> countLiveBytes(const ArenaUse &use) {
  std::vector<int64_t> bytes(size_t(use.positions) + 1);
  for (const TensorUse &tensor : use.tensors) {
    bytes[size_t(tensor.begin)] += tensor.bytes;
    bytes[size_t(std::min(tensor.end, use.positions - 1)) + 1] -= tensor.bytes;
  }
  int64_t live = 0;
  for (int64_t &each : bytes)
    each = live += each;
  return bytes;
}

ArenaCurve tools::makeArenaCurve(const format::Entry &entry) {
  ArenaCurve curve;
  std::vector<int64_t> live = countLiveBytes(getArenaUse(entry));
  uint32_t number = 0;
  size_t position = 0;
  for (const format::Command *command : *entry.body()->commands()) {
    curve[number] = live[position];
    number += countCommands(*command);
    position += 2;
  }
  return curve;
}
