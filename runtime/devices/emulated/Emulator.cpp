#include "runtime/devices/emulated/Emulator.h"
#include "runtime/devices/emulated/Block.h"

using namespace tcc::emulated;
using namespace tcc::runtime;

/// Threads of a block at most, as of all devices.
static constexpr uint32_t kMaxThreads = 1024;

struct Emulator::State {
  explicit State(Schedule schedule) : scheduler(schedule), block(scheduler) {}

  Scheduler scheduler;
  Block block;
};

Emulator::Emulator(Schedule schedule)
    : state(std::make_unique<State>(schedule)) {}
Emulator::~Emulator() = default;
Emulator::Emulator(Emulator &&) noexcept = default;
Emulator &Emulator::operator=(Emulator &&) noexcept = default;

Status Emulator::launch(const Launch &launch) {
  if (launch.threads == 0 || launch.threads > kMaxThreads)
    return makeError(Code::Internal, "kernel ", launch.name, " has ",
                     launch.threads, " threads a block, expected 1 to ",
                     kMaxThreads);
  state->block.beginLaunch(launch);
  for (uint32_t index : state->scheduler.arrange(launch.blocks))
    if (Status status = state->block.run(index); !status.ok())
      return status;
  return {};
}
