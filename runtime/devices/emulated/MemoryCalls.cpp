// Memory of the simulated driver.

#include "runtime/devices/emulated/DriverCalls.h"

#include "runtime/base/Alignment.h"

#include <optional>

#include <algorithm>
#include <cstdlib>

using namespace tcc;
using namespace tcc::emulated;
using namespace tcc::runtime;
using namespace tcc::runtime::cuda;

namespace {

Error memGetInfo(size_t *free, size_t *total) {
  return call([&] {
    *total = DeviceMemory::totalBytes();
    *free = *total - std::min(*total, simulator().memory.usedBytes());
    return Status();
  });
}

Error memAlloc(Address *address, size_t bytes) {
  Error error = call([&] {
    *address = simulator().memory.allocate(bytes);
    return Status();
  });
  return error == kSuccess && *address == 0 ? kOutOfMemory : error;
}

Error memFree(Address address) {
  return call([&] { return simulator().memory.release(address); }, kRelease);
}

Error memHostAlloc(void **address, size_t bytes, unsigned) {
  return call([&]() -> Status {
    *address = std::aligned_alloc(kTensorAlignment, alignTensor(bytes));
    simulator().pinned[reinterpret_cast<uint64_t>(*address)] = bytes;
    return Status();
  });
}

Error memFreeHost(void *address) {
  return call(
      [&]() -> Status {
        if (!simulator().pinned.erase(reinterpret_cast<uint64_t>(address)))
          return Status(Code::Device, "freeing what is no pinned memory");
        std::free(address);
        return Status();
      },
      kRelease);
}

/// Bytes that go between host and device in a microsecond, as
/// TCC_EMULATED_COPY says them; nothing if that is malformed.
std::optional<double> readCopyRate() {
  const char *given = std::getenv("TCC_EMULATED_COPY");
  double rate = kCopiedBytesPerMicrosecond;
  int end = 0;
  if (given && (std::sscanf(given, "%lf%n", &rate, &end) != 1 ||
                given[end] != 0 || !(rate > 0)))
    return std::nullopt;
  return rate;
}

/// Memory that is not pinned is copied now, and all that comes before.
Status copy(Stream &stream, Operation operation, const void *host) {
  static const std::optional<double> rate = readCopyRate();
  if (!rate)
    return Status(Code::Device, concat("TCC_EMULATED_COPY is '",
                                       std::getenv("TCC_EMULATED_COPY"),
                                       "', expected BYTES"));
  if (Status status = simulator().memory.checkHost(host, operation.bytes);
      !status.ok())
    return status;
  bool isPinned = simulator().isPinned(host, operation.bytes);
  operation.microseconds += double(operation.bytes) / *rate;
  if (!isPinned && stream.captured)
    return Status(Code::Device, "a graph copies memory that is not pinned");
  Status status = simulator().enqueue(stream, std::move(operation));
  return status.ok() && !isPinned ? simulator().run(stream) : std::move(status);
}

Error memcpyHtoDAsync(Address to, const void *from, size_t bytes,
                      StreamHandle stream) {
  return call([&]() -> Status {
    if (Status status = simulator().memory.checkDevice(to, bytes); !status.ok())
      return status;
    Operation operation{Operation::Copy, to, reinterpret_cast<uint64_t>(from),
                        bytes};
    return copy(streamOf(stream), std::move(operation), from);
  });
}

Error memcpyDtoHAsync(void *to, Address from, size_t bytes,
                      StreamHandle stream) {
  return call([&]() -> Status {
    if (Status status = simulator().memory.checkDevice(from, bytes);
        !status.ok())
      return status;
    Operation operation{Operation::Copy, reinterpret_cast<uint64_t>(to), from,
                        bytes};
    return copy(streamOf(stream), std::move(operation), to);
  });
}

Error memcpyDtoDAsync(Address to, Address from, size_t bytes,
                      StreamHandle stream) {
  return call([&]() -> Status {
    for (Address address : {to, from})
      if (Status status = simulator().memory.checkDevice(address, bytes);
          !status.ok())
        return status;
    if (to < from + bytes && from < to + bytes)
      return Status(Code::Device, "a copy between places that overlap");
    Operation operation{Operation::Copy, to, from, bytes};
    operation.microseconds += bytes / kCopiedBytesPerMicrosecond;
    return simulator().enqueue(streamOf(stream), std::move(operation));
  });
}

Error memsetD8Async(Address to, unsigned char value, size_t bytes,
                    StreamHandle stream) {
  return call([&] {
    return simulator().enqueue(streamOf(stream),
                               {Operation::Set, to, 0, bytes, value});
  });
}

} // namespace

void emulated::addMemoryCalls(Driver &driver) {
  driver.memGetInfo = memGetInfo;
  driver.memAlloc = memAlloc;
  driver.memFree = memFree;
  driver.memHostAlloc = memHostAlloc;
  driver.memFreeHost = memFreeHost;
  driver.memcpyHtoDAsync = memcpyHtoDAsync;
  driver.memcpyDtoHAsync = memcpyDtoHAsync;
  driver.memcpyDtoDAsync = memcpyDtoDAsync;
  driver.memsetD8Async = memsetD8Async;
}
