#include "runtime/devices/cuda/RankCalls.h"

#include "runtime/base/Plugin.h"
#include "runtime/ranks/Loss.h"

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <numeric>
#include <pthread.h>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::runtime::cuda;

static constexpr char kPlugin[] = "libtcc_nccl.so";
static constexpr char kEmulatedPlugin[] = "libtcc_emulated.so";
/// How long ranks wait for each other's devices at the beginning.
static constexpr std::chrono::seconds kMeeting(30);
/// How often the library is asked for errors.
static constexpr std::chrono::milliseconds kPeriod(100);

static DeviceProgress &progressIn(Memory &memory) {
  return *reinterpret_cast<DeviceProgress *>(memory.data());
}

//===----------------------------------------------------------------------===//
// Ranks meet
//===----------------------------------------------------------------------===//

Status RankCalls::openLibrary() {
  Result<void *> found = findInPlugin(kPlugin, kOpenGroupLibrary);
  if (!found.ok())
    return makeError(Code::Unsupported, "device '", device.name(),
                     "' has no collectives: ", found.takeStatus().message());
  GroupChoice choice = {.places = std::getenv("TCC_CUDA_LIB")};
  if (device.isEmulated()) {
    Result<void *> table = findInPlugin(kEmulatedPlugin, "tcc_emulated_nccl");
    if (!table.ok())
      return table.takeStatus();
    choice.simulated = reinterpret_cast<const Nccl *(*)()>(*table)();
  }
  Status status;
  library.reset(reinterpret_cast<OpenGroupLibrary>(*found)(choice, status));
  return library ? Status() : std::move(status);
}

/// Rank 0's id goes to all others by the host.
Status RankCalls::join() {
  GroupId id = {};
  Status made;
  if (communicator.rank() == 0) {
    Result<GroupId> created = library->createId();
    if (created.ok())
      id = *created;
    else
      made = created.takeStatus();
  }
  if (Status status = communicator.agree(made); !status.ok())
    return status;
  if (Status status =
          communicator.broadcast(id.data(), id.data(), id.size(), DType::u8,
                                 /*root=*/0, "the devices' group");
      !status.ok())
    return status;
  auto isOver = [&, end = Clock::now() + kMeeting] {
    return Clock::now() >= end || communicator.isLost();
  };
  auto joined =
      library->join(id, communicator.rank(), communicator.size(), isOver);
  if (!joined.ok())
    return communicator.fail(joined.takeStatus().message());
  group = std::move(*joined);
  return Status();
}

Status RankCalls::createMarks(size_t most) {
  std::vector<DeviceProgress> values(2 * most + 1);
  std::iota(values.begin(), values.end(), 0);
  size_t bytes = values.size() * sizeof(values[0]);
  if (Status status = marks.reserve(bytes, device.allocator({}), "ranks");
      !status.ok())
    return status;
  return device.write(marks.data(), values.data(), bytes);
}

/// Signals are for the threads of the program.
Status RankCalls::begin() {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  Status status;
  try {
    thread = std::thread([this] { watch(); });
  } catch (const std::exception &) { // neither a thread nor memory for one
    status = Status(Code::OutOfMemory, "there is no thread for ranks");
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return status;
}

Result<std::unique_ptr<RankCalls>> RankCalls::open(CudaDevice &device,
                                                   Communicator &communicator,
                                                   StreamHandle stream,
                                                   size_t most) {
  std::unique_ptr<RankCalls> calls(new RankCalls(device, communicator, stream));
  Status status = communicator.agree(calls->openLibrary());
  if (status.ok())
    status = calls->join();
  if (status.ok())
    status = calls->createMarks(most);
  if (status.ok())
    status = calls->begin();
  if (!status.ok())
    return status;
  communicator.attach(calls.get());
  return calls;
}

RankCalls::~RankCalls() {
  communicator.attach(nullptr);
  communicator.freeze();
  {
    std::lock_guard lock(mutex);
    isEnding = true;
    changed.notify_all();
  }
  if (thread.joinable())
    thread.join();
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

void RankCalls::begin(Memory &progress) {
  communicator.forget(progressIn(progress));
  std::atomic_ref(progressIn(progress)).store(0, std::memory_order_release);
}

void RankCalls::note(const Exchange &exchange, Memory &progress, size_t index) {
  communicator.give(exchange.kind, exchange.count, exchange.dtype, exchange.of,
                    progressIn(progress), index);
}

Status RankCalls::mark(Memory &progress, size_t value,
                       StreamHandle lane) const {
  return device.check(
      device.driver().memcpyDtoHAsync(
          progress.data(),
          addressOf(marks.data() + value * sizeof(DeviceProgress)),
          sizeof(DeviceProgress), lane),
      "counting collectives");
}

Status RankCalls::enqueue(const Exchange &exchange, Memory &progress,
                          size_t index, StreamHandle lane) {
  if (Status status = mark(progress, 2 * index + 1, lane); !status.ok())
    return status;
  Status status = group->enqueue(exchange, lane);
  if (status.code() == Code::Peer)
    return communicator.fail(status.message());
  if (!status.ok())
    return status;
  return mark(progress, 2 * index + 2, lane);
}

Status RankCalls::check() {
  std::string why;
  {
    std::lock_guard lock(mutex);
    why = failure;
  }
  if (why.empty() && communicator.isLost())
    return communicator.fail("");
  if (why.empty())
    if (Status status = group->check(); !status.ok())
      why = status.message();
  return why.empty() ? Status() : communicator.fail(why);
}

Status RankCalls::settle() {
  auto active = device.activate();
  if (!active.ok())
    return active.takeStatus();
  Error error = device.driver().streamSynchronize(stream);
  if (Status status = check(); !status.ok())
    return status;
  return device.check(error, "waiting for the device");
}

//===----------------------------------------------------------------------===//
// The thread
//===----------------------------------------------------------------------===//

void RankCalls::abort() {
  std::lock_guard lock(mutex);
  isAborted = true;
  changed.notify_all();
}

/// An error of the library, or of a collective that takes too long.
Status RankCalls::findFailure() {
  if (Status status = group->check(); !status.ok())
    return status;
  Position position = communicator.position();
  Clock::time_point now = Clock::now();
  bool isSame = position.last.number == lastSeen.last.number &&
                position.last.end == lastSeen.last.end;
  if (!isSame || position.last.end >= 0)
    since = now;
  lastSeen = position;
  auto longest = communicator.timeout();
  if (longest.count() == 0 || now - since <= longest)
    return Status();
  return makeError(Code::Peer, "no end of it for ",
                   describeTime(static_cast<uint32_t>(longest.count())));
}

/// What ends the group may wait until its graphs are gone, so only this thread
/// does it.
void RankCalls::watch() {
  pthread_setname_np(pthread_self(), "tcc-collectives");
  std::unique_lock lock(mutex);
  while (!isEnding && !isAborted) {
    changed.wait_for(lock, kPeriod, [&] { return isEnding || isAborted; });
    if (isEnding || isAborted)
      break;
    lock.unlock();
    Status status = findFailure();
    lock.lock();
    if (!status.ok()) {
      communicator.freeze();
      failure = status.message();
      isAborted = true;
    }
  }
  bool mustAbort = isAborted;
  lock.unlock();
  if (mustAbort)
    group->abort();
}
