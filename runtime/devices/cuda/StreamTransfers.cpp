// What a stream copies between the host and the device.

#include "runtime/base/Alignment.h"
#include "runtime/devices/cuda/CudaStream.h"

#include <cstring>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::runtime::cuda;

/// What the run reads is there before it begins.
Status CudaStream::awaitUploads() {
  size_t bytes = std::exchange(current->staged, 0);
  if (bytes == 0)
    return Status();
  Error error = kSuccess;
  if (tracing && current->timedUpload.begin) {
    current->timedUpload.bytes = bytes;
    error = markUpload(current->timedUpload.end);
  }
  if (error == kSuccess)
    error = driver.eventRecord(current->uploaded, uploads);
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
    if (error == kSuccess && tracing)
      error = markUpload(flight.timedUpload.begin);
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

/// Records a timed event, created the first time, where the uploads are now.
Error CudaStream::markUpload(EventHandle &event) {
  Error error = event ? kSuccess : driver.eventCreate(&event, /*flags=*/0);
  return error == kSuccess ? driver.eventRecord(event, uploads) : error;
}

/// The uploads of a run that `timeline` has and that began at `start`.
Error CudaStream::reportUpload(Flight &flight, const Timeline &timeline,
                               int64_t start) {
  auto &upload = flight.timedUpload;
  auto bytes = static_cast<int64_t>(std::exchange(upload.bytes, 0));
  if (bytes == 0)
    return kSuccess;
  int64_t before = 0, after = 0; // to the run's begin
  Error error = timeline.measureSince(upload.begin, before);
  if (error == kSuccess)
    error = timeline.measureSince(upload.end, after);
  if (error != kSuccess)
    return error;
  // Each run has its begin by the host's clock, which is not exact.
  int64_t begin = std::max(start - before, lastUploadEnd);
  lastUploadEnd = std::max(start - after, begin);
  tracing->add({.begin = begin,
                .end = lastUploadEnd,
                .bytes = bytes,
                .lane = TraceEvent::kUploads});
  return kSuccess;
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
