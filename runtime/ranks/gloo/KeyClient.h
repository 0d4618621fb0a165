//===- KeyClient.h - Asks rank 0 what others said ---------------*- C++ -*-===//
#ifndef TCC_RUNTIME_RANKS_GLOO_KEYCLIENT_H
#define TCC_RUNTIME_RANKS_GLOO_KEYCLIENT_H

#include "runtime/base/Status.h"

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tcc::runtime::ranks {

/// A connection to a KeyServer. One thread at a time. After an error but that a
/// key is taken every call fails. All calls wait until the deadline, then fail
/// with Code::Peer, as they do where rank 0 went away.
class KeyClient {
public:
  using Clock = std::chrono::steady_clock;

  /// Tries until a server is there. Code::Usage if the host is still unknown at
  /// the deadline, or what answers is no KeyServer of this version.
  static Result<std::unique_ptr<KeyClient>>
  connect(const std::string &host, uint16_t port, Clock::time_point deadline);
  ~KeyClient();

  /// Code::Usage if the key has a value.
  Status set(const std::string &key, std::span<const char> value);
  /// Waits until the key has a value; fails where another client gave up, or is
  /// gone that has set a key.
  Result<std::vector<char>> get(const std::string &key);
  /// Whether a call failed with the reason of another client.
  bool hasReason() const { return isToldReason; }
  /// The last call, also after one that failed: others that wait fail with this
  /// reason.
  void giveUp(std::string_view why);

  /// The address of this machine, as rank 0 sees it.
  std::string ownAddress() const;

private:
  struct State;
  explicit KeyClient(std::unique_ptr<State> state);

  std::unique_ptr<State> state;
  bool isToldReason = false;
};

} // namespace tcc::runtime::ranks

#endif // TCC_RUNTIME_RANKS_GLOO_KEYCLIENT_H
