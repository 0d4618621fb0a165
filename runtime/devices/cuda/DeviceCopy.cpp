#include "runtime/devices/cuda/DeviceCopy.h"

#include <algorithm>

using namespace tcc::runtime;
using namespace tcc::runtime::cuda;

static Error copyPiece(const Driver &driver, Address to, Address from,
                       size_t bytes, Address passage, StreamHandle stream) {
  bool isDisjoint = to + bytes <= from || from + bytes <= to;
  Error error = kSuccess;
  if (!isDisjoint) {
    error = driver.memcpyDtoDAsync(passage, from, bytes, stream);
    from = passage;
  }
  if (error == kSuccess)
    error = driver.memcpyDtoDAsync(to, from, bytes, stream);
  return error;
}

/// Places that overlap are copied in pieces, the ones first that are
/// overwritten: as long as the way between them, or as the passage.
Error cuda::copyOnDevice(const Driver &driver, void *to, const void *from,
                         size_t bytes, std::span<std::byte> passage,
                         StreamHandle stream) {
  auto target = reinterpret_cast<Address>(to);
  auto source = reinterpret_cast<Address>(from);
  auto middle = reinterpret_cast<Address>(passage.data());
  size_t distance = target > source ? target - source : source - target;
  if (distance == 0)
    return kSuccess;
  size_t piece = distance < bytes ? std::max(distance, passage.size()) : bytes;
  Error error = kSuccess;
  for (size_t done = 0; done < bytes && error == kSuccess; done += piece) {
    size_t count = std::min(piece, bytes - done);
    size_t at = target > source ? bytes - done - count : done;
    error = copyPiece(driver, target + at, source + at, count, middle, stream);
  }
  return error;
}
