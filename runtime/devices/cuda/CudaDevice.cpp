#include "runtime/devices/cuda/CudaDevice.h"

#include "runtime/devices/cuda/CudaStream.h"
#include "runtime/devices/cuda/WorkName.h"

#include <algorithm>
#include <cstring>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::runtime::cuda;

/// Weights are copied in pieces of as much: one is filled while the other one
/// is on its way.
static constexpr size_t kPieceBytes = size_t(8) << 20;
/// The driver stages less than this by itself.
static constexpr size_t kSmallBytes = size_t(64) << 10;

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Activation::~Activation() {
  ContextHandle popped = nullptr;
  if (driver)
    driver->ctxPopCurrent(&popped);
}

Result<Activation> Activation::begin(const Driver &driver,
                                     ContextHandle context) {
  Error error = driver.ctxPushCurrent(context);
  if (Status status = cuda::check(driver, error, "using the device");
      !status.ok())
    return status;
  return Activation(driver);
}

static void *allocateOnDevice(void *user, size_t bytes, size_t) {
  auto &device = *static_cast<CudaDevice *>(user);
  Address address = 0; // a multiple of 256
  auto active = device.activate();
  if (!active.ok() || device.driver().memAlloc(&address, bytes) != kSuccess)
    return nullptr;
  return reinterpret_cast<void *>(address);
}

static void releaseToDevice(void *user, void *address, size_t) {
  auto &device = *static_cast<CudaDevice *>(user);
  if (auto active = device.activate(); active.ok())
    device.driver().memFree(addressOf(address));
}

static uint64_t availableOnDevice(void *user) {
  auto &device = *static_cast<CudaDevice *>(user);
  size_t free = 0, total = 0;
  if (auto active = device.activate(); active.ok())
    device.driver().memGetInfo(&free, &total);
  return free;
}

Allocator CudaDevice::allocator(const Allocator &) {
  return {this, allocateOnDevice, releaseToDevice, availableOnDevice};
}

static void *allocatePinned(void *user, size_t bytes, size_t) {
  auto &device = *static_cast<CudaDevice *>(user);
  void *address = nullptr; // of a page
  auto active = device.activate();
  if (!active.ok() ||
      device.driver().memHostAlloc(&address, bytes, /*flags=*/0) != kSuccess)
    return nullptr;
  return address;
}

static void releasePinned(void *user, void *address, size_t) {
  auto &device = *static_cast<CudaDevice *>(user);
  if (auto active = device.activate(); active.ok())
    device.driver().memFreeHost(address);
}

Allocator CudaDevice::staging(const Allocator &) {
  return {this, allocatePinned, releasePinned, nullptr};
}

//===----------------------------------------------------------------------===//
// Opening
//===----------------------------------------------------------------------===//

/// Takes the device's primary context, which libraries share.
Status CudaDevice::retain(const Choice &choice, int &major, int &minor) {
  const Driver &call = *table;
  int count = 0;
  if (Status status =
          check(call.deviceGetCount(&count), "counting CUDA devices");
      !status.ok())
    return status;
  if (number >= count && count > 0 && !choice.isNumbered)
    return makeError(
        Code::Usage, "rank ", number, " of this machine, which has ", count,
        " CUDA device", count > 1 ? "s" : "", ", needs ", number + 1,
        ": each rank has one of its own, by its number here; where "
        "each sees its own alone, that is 'cuda:0'");
  if (number >= count)
    return makeError(Code::Device, "there is no CUDA device ", number, " of ",
                     count);
  if (Status status =
          check(call.deviceGet(&device, number), "opening " + label);
      !status.ok())
    return status;
  char name[256] = "";
  Error error = call.deviceGetName(name, sizeof(name) - 1, device);
  model = name;
  if (error == kSuccess)
    error = call.deviceGetAttribute(&major, kComputeMajor, device);
  if (error == kSuccess)
    error = call.deviceGetAttribute(&minor, kComputeMinor, device);
  if (error == kSuccess)
    error = call.devicePrimaryCtxRetain(&context, device);
  return check(error, "opening " + label);
}

Status CudaDevice::createTransfers() {
  Error error = table->streamCreate(&stream, kNonBlocking);
  for (EventHandle &event : copied)
    if (error == kSuccess)
      error = table->eventCreate(&event, kNoTiming);
  return check(error, "creating a stream");
}

Result<std::unique_ptr<CudaDevice>>
CudaDevice::open(const Driver &driver, const Choice &choice,
                 const Package &package, Tunings tunings, const LogSink &log) {
  std::string label =
      concat(choice.isEmulated ? "emulated:" : "cuda:", choice.ordinal);
  std::unique_ptr<CudaDevice> device(
      new CudaDevice(driver, choice, std::move(label)));
  int major = 0, minor = 0;
  if (Status status = device->retain(choice, major, minor); !status.ok())
    return status;
  auto active = device->activate();
  if (!active.ok())
    return active.takeStatus();
  auto module = choice.isEmulated
                    ? CodeModule::loadEmulated(driver, package)
                    : CodeModule::loadCuda(driver, package, major, minor, log);
  if (!module.ok())
    return module.takeStatus();
  device->module.emplace(std::move(*module));
  device->loaded = &package.program();
  auto opened = openLibrary(choice, package.program());
  if (!opened.ok())
    return opened.takeStatus();
  device->opened = std::move(*opened);
  device->fastest = std::move(tunings);
  if (Status status = device->createTransfers(); !status.ok())
    return status;
  return device;
}

CudaDevice::~CudaDevice() {
  if (!context)
    return;
  if (auto active = activate(); active.ok()) {
    if (stream) {
      table->streamSynchronize(stream); // of a transfer that failed half-way
      table->streamDestroy(stream);
    }
    for (EventHandle event : copied)
      if (event)
        table->eventDestroy(event);
    for (Memory &piece : pieces)
      piece = Memory();
    opened.library.reset();
    module.reset();
  }
  table->devicePrimaryCtxRelease(device);
}

Result<std::unique_ptr<Stream>>
CudaDevice::createStream(std::span<const EntryPlan> entries,
                         const StreamOptions &options) {
  return CudaStream::create(*this, entries, options.communicator);
}

std::string CudaDevice::nameWork(const LibraryWork &work,
                                 size_t workspaceBytes) const {
  return concat(model, ", ", library(), ", workspace ", workspaceBytes, ": ",
                cuda::nameWork(work));
}

//===----------------------------------------------------------------------===//
// Transfers
//===----------------------------------------------------------------------===//

Status CudaDevice::writePieces(Address to, const std::byte *from,
                               size_t bytes) {
  for (Memory &piece : pieces)
    if (Status status = piece.reserve(kPieceBytes, staging({}), "transfers");
        !status.ok())
      return status;
  for (size_t at = 0, turn = 0; at < bytes; at += kPieceBytes, turn ^= 1) {
    size_t count = std::min(bytes - at, kPieceBytes);
    Error error = table->eventSynchronize(copied[turn]);
    if (error == kSuccess) {
      std::memcpy(pieces[turn].data(), from + at, count);
      error =
          table->memcpyHtoDAsync(to + at, pieces[turn].data(), count, stream);
    }
    if (error == kSuccess)
      error = table->eventRecord(copied[turn], stream);
    if (Status status = check(error, "copying to the device"); !status.ok())
      return status;
  }
  return Status();
}

Status CudaDevice::write(void *to, const void *from, size_t bytes) {
  if (bytes == 0)
    return Status();
  std::lock_guard lock(transfers);
  auto active = activate();
  if (!active.ok())
    return active.takeStatus();
  Status status =
      bytes <= kSmallBytes
          ? check(table->memcpyHtoDAsync(addressOf(to), from, bytes, stream),
                  "copying to the device")
          : writePieces(addressOf(to), static_cast<const std::byte *>(from),
                        bytes);
  if (!status.ok())
    return status;
  return check(table->streamSynchronize(stream), "copying to the device");
}

Status CudaDevice::read(void *to, const void *from, size_t bytes) {
  if (bytes == 0)
    return Status();
  std::lock_guard lock(transfers);
  auto active = activate();
  if (!active.ok())
    return active.takeStatus();
  Error error = table->memcpyDtoHAsync(to, addressOf(from), bytes, stream);
  if (error == kSuccess)
    error = table->streamSynchronize(stream);
  return check(error, "copying from the device");
}

Status CudaDevice::clear(void *at, size_t bytes) {
  if (bytes == 0)
    return Status();
  std::lock_guard lock(transfers);
  auto active = activate();
  if (!active.ok())
    return active.takeStatus();
  Error error = table->memsetD8Async(addressOf(at), 0, bytes, stream);
  if (error == kSuccess)
    error = table->streamSynchronize(stream);
  return check(error, "clearing memory of the device");
}
