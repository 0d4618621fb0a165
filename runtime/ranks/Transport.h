//===- Transport.h - What moves bytes between ranks -------------*- C++ -*-===//
#ifndef TCC_RUNTIME_RANKS_TRANSPORT_H
#define TCC_RUNTIME_RANKS_TRANSPORT_H

#include "runtime/base/Status.h"
#include "runtime/package/DType.h"
#include "runtime/ranks/Launch.h"

#include <chrono>

namespace tcc::runtime {

/// What a Communicator's calls come to, as a plugin has it: buffers, counts and
/// the order of calls are those of Communicator. One thread at a time, but for
/// `abort`. Code::Peer where another rank is the reason, with what the library
/// says; what the call wrote is undefined then.
class Transport {
public:
  virtual ~Transport() = default;

  /// The name in messages.
  virtual std::string_view name() const = 0;

  /// Code::Unsupported of a type that is not `isSummedByRanks`.
  virtual Status allReduce(const void *from, void *to, size_t count,
                           DType dtype) = 0;
  virtual Status reduceScatter(const void *from, void *to, size_t count,
                               DType dtype) = 0;
  virtual Status allGather(const void *from, void *to, size_t count,
                           DType dtype) = 0;
  virtual Status broadcast(const void *from, void *to, size_t count,
                           DType dtype, int root) = 0;
  virtual Status barrier() = 0;

  /// The last call of a rank that did its part; returns once all have called
  /// it.
  virtual Status close() { return barrier(); }
  /// How long a call may take from now on, 0 for ever; until then that of the
  /// rendezvous.
  virtual void setTimeout(std::chrono::milliseconds longest) = 0;
  /// The call that is under way, if one is, and all later ones fail soon, here
  /// and at ranks that wait for this one. Any thread may call it, at any time
  /// before the transport goes.
  virtual void abort() = 0;
};

/// What a transport's plugin exports as kOpenTransport: returns once all ranks
/// of the launch have called it; null with `status`.
using OpenTransport = Transport *(*)(const Launch &launch,
                                     std::chrono::milliseconds rendezvous,
                                     Status &status);
inline constexpr char kOpenTransport[] = "tcc_open_transport";

} // namespace tcc::runtime

#endif // TCC_RUNTIME_RANKS_TRANSPORT_H
