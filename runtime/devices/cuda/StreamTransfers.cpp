// What a stream copies between the host and the device.

#include "runtime/base/Alignment.h"
#include "runtime/devices/cuda/CudaStream.h"

#include <cstring>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::runtime::cuda;

/// What the run reads is there before it begins.
Status CudaStream::awaitUploads() {
  if (std::exchange(current->staged, 0) == 0)
    return Status();
  Error error = driver.eventRecord(current->uploaded, uploads);
  if (error == kSuccess)
    error = driver.streamWaitEvent(stream, current->uploaded, /*flags=*/0);
  return device.check(error, "copying to the device");
}

/// Copies that were staged before are done before their memory is replaced.
Status CudaStream::reserveStaging(Flight &flight, size_t bytes) {
  if (flight.staging.size() >= bytes)
    return Status();
  if (Status status = device.check(driver.streamSynchronize(uploads),
                                   "copying to the device");
      !status.ok())
    return status;
  return flight.staging.reserve(2 * bytes, device.staging({}), "inputs");
}

/// Through pinned memory and a stream of its own, once the run has read what it
/// was given before.
Status CudaStream::upload(Run &run, void *to, const void *from, size_t bytes) {
  auto active = device.activate();
  if (!active.ok())
    return active.takeStatus();
  Result<Flight *> found = flightOf(run);
  if (!found.ok())
    return found.takeStatus();
  Flight &flight = **found;
  Error error = kSuccess;
  if (flight.staged == 0) {
    error = driver.eventSynchronize(flight.uploaded);
    if (error == kSuccess)
      error = driver.streamWaitEvent(uploads, flight.done, /*flags=*/0);
  }
  if (error != kSuccess)
    return device.check(error, "copying to the device");
  if (Status status = reserveStaging(flight, flight.staged + bytes);
      !status.ok())
    return status;
  std::byte *staged = flight.staging.data() + flight.staged;
  std::memcpy(staged, from, bytes);
  flight.staged += alignTensor(bytes);
  return device.check(
      driver.memcpyHtoDAsync(addressOf(to), staged, bytes, uploads),
      "copying to the device");
}

Status CudaStream::download(void *to, const void *from, size_t bytes) {
  auto active = device.activate();
  if (!active.ok())
    return active.takeStatus();
  return device.check(
      driver.memcpyDtoHAsync(to, addressOf(from), bytes, stream),
      "copying from the device");
}

Status CudaStream::read(void *to, const void *from, size_t bytes) {
  auto active = device.activate();
  if (!active.ok())
    return active.takeStatus();
  Status status = device.check(
      driver.memcpyDtoHAsync(element.data(), addressOf(from), bytes, stream),
      "reading from the device");
  if (status.ok())
    status = wait();
  if (status.ok())
    std::memcpy(to, element.data(), bytes);
  return status;
}
