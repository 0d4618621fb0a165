//===- KeyServer.h - Where ranks leave word for each other ------*- C++ -*-===//
//
// Rank 0 keeps values by key, over TCP. A client begins with kGreeting, which
// is answered by itself, and then makes one request at a time:
//
//   RequestHeader, key, value
//
// A set is answered by one byte, a SetAnswer; a get by a GetAnswer and the
// value, once the key is there. A client may give up, also while it waits for a
// key, and says why; one whose connection ends after a set did so without a
// word. The first reason is told to all who wait for a key, then or later.
// Numbers are little-endian.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_RUNTIME_RANKS_GLOO_KEYSERVER_H
#define TCC_RUNTIME_RANKS_GLOO_KEYSERVER_H

#include "runtime/base/Status.h"

#include <chrono>
#include <cstdint>
#include <memory>

namespace tcc::runtime::ranks {

/// The last byte changes with what follows, and with what ranks that have met
/// say first: see runtime/ranks/Build.h.
inline constexpr char kGreeting[8] = {'t', 'c', 'c', 'k', 'e', 'y', 's', '2'};

enum class RequestKind : uint32_t { Set, Get, GiveUp };
enum class SetAnswer : uint8_t { Done, Taken };

struct RequestHeader {
  RequestKind kind;
  uint32_t keyBytes;
  uint32_t valueBytes; ///< that a set or a reason has
};

struct GetAnswer {
  uint32_t isLost; ///< 1: a client gave up, and what follows is the reason
  uint32_t bytes;  ///< that follow
};

/// A client that exceeds one is none of ours.
inline constexpr uint32_t kMaxKeyBytes = 1 << 10, kMaxValueBytes = 1 << 20;

/// Serves in a thread of its own until it is destroyed.
class KeyServer {
public:
  /// At the loopback device if the host is one of its addresses, else at all;
  /// port 0 is any that is free. Code::Usage if the port is in use or the host
  /// still unknown at the deadline.
  static Result<std::unique_ptr<KeyServer>>
  listen(const std::string &host, uint16_t port,
         std::chrono::steady_clock::time_point deadline);
  ~KeyServer();

  uint16_t port() const;
  /// Waits until all clients left, or so long.
  void waitForClients(std::chrono::milliseconds longest) const;

private:
  struct State;
  explicit KeyServer(std::unique_ptr<State> state);

  std::unique_ptr<State> state;
};

} // namespace tcc::runtime::ranks

#endif // TCC_RUNTIME_RANKS_GLOO_KEYSERVER_H
