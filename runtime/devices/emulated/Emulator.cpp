#include "runtime/devices/emulated/Emulator.h"
#include "runtime/devices/emulated/Block.h"

#include <algorithm>
#include <numeric>
#include <vector>

using namespace tcc::emulated;
using namespace tcc::runtime;

/// Threads of a block at most, as of all devices.
static constexpr uint32_t kMaxThreads = 1024;

/// All blocks of a launch, in the order of the schedule.
class Emulator::Grid {
public:
  explicit Grid(Schedule schedule)
      : order(schedule.order), state(schedule.seed) {}

  Status run(const Launch &launch);

private:
  using Order = Schedule::Order;

  /// 0 to count - 1, as the schedule wants them.
  void arrange(std::vector<uint32_t> &indices, uint32_t count);
  uint64_t random();
  Status runBlock(uint32_t index);
  void runInTurns();
  void runWarps();
  bool runWarp(uint32_t warp);

  Order order;
  uint64_t state;
  Block block;
  uint32_t threadCount = 0;
  std::vector<uint32_t> blocks, units; ///< units: threads or warps
};

/// SplitMix64 (G. Steele, D. Lea and C. Flood, 2014).
uint64_t Emulator::Grid::random() {
  uint64_t z = state += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

void Emulator::Grid::arrange(std::vector<uint32_t> &indices, uint32_t count) {
  indices.resize(count);
  std::iota(indices.begin(), indices.end(), 0);
  if (order == Order::reverse)
    std::reverse(indices.begin(), indices.end());
  if (order == Order::random)
    for (uint32_t i = count; i > 1; --i)
      std::swap(indices[i - 1], indices[random() % i]);
}

/// Each thread until it waits, and again.
void Emulator::Grid::runInTurns() {
  for (bool hasProgress = true; hasProgress && !block.hasFailed();) {
    hasProgress = false;
    for (uint32_t thread : units) {
      if (!block.isReady(thread))
        continue;
      block.step(thread);
      if (block.hasFailed())
        return;
      hasProgress = true;
    }
  }
}

/// Runs a warp until all its threads wait for others or are done.
bool Emulator::Grid::runWarp(uint32_t warp) {
  uint32_t first = warp * kWarpSize;
  uint32_t count = std::min(kWarpSize, threadCount - first);
  uint32_t offset = random() % count;
  bool hasProgress = false;
  for (uint32_t waiting = 0; waiting < count; offset = (offset + 1) % count) {
    if (!block.isReady(first + offset)) {
      ++waiting;
      continue;
    }
    block.step(first + offset);
    if (block.hasFailed())
      return false;
    hasProgress = true;
    waiting = 0;
  }
  return hasProgress;
}

/// One warp as far as it gets before the next one: what a warp overwrites while
/// others have yet to read it shows.
void Emulator::Grid::runWarps() {
  for (bool hasProgress = true; hasProgress && !block.hasFailed();) {
    hasProgress = false;
    arrange(units, (threadCount + kWarpSize - 1) / kWarpSize);
    for (uint32_t warp : units)
      hasProgress |= !block.hasFailed() && runWarp(warp);
  }
}

Status Emulator::Grid::runBlock(uint32_t index) {
  block.begin(index);
  if (order == Order::random)
    runWarps();
  else
    runInTurns();
  return block.end();
}

Status Emulator::Grid::run(const Launch &launch) {
  if (launch.threads == 0 || launch.threads > kMaxThreads)
    return makeError(Code::Internal, "kernel ", launch.name, " has ",
                     launch.threads, " threads a block, expected 1 to ",
                     kMaxThreads);
  threadCount = launch.threads;
  block.beginLaunch(launch);
  arrange(blocks, launch.blocks);
  if (order != Order::random)
    arrange(units, threadCount);
  for (uint32_t index : blocks)
    if (Status status = runBlock(index); !status.ok())
      return status;
  return {};
}

Emulator::Emulator(Schedule schedule)
    : grid(std::make_unique<Grid>(schedule)) {}
Emulator::~Emulator() = default;
Emulator::Emulator(Emulator &&) noexcept = default;
Emulator &Emulator::operator=(Emulator &&) noexcept = default;

Status Emulator::launch(const Launch &launch) { return grid->run(launch); }
