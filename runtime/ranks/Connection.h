//===- Connection.h - Messages of watches over TCP --------------*- C++ -*-===//
#ifndef TCC_RUNTIME_RANKS_CONNECTION_H
#define TCC_RUNTIME_RANKS_CONNECTION_H

#include "runtime/base/Status.h"
#include "runtime/ranks/Loss.h"

#include <chrono>
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

namespace tcc::runtime {

/// What watches say to each other, as it lies in memory: all ranks are of one
/// build (`nameBuild`). A member says Hello, which the hub answers by Welcome;
/// later either says Beat once in a while, Loss, which is its last word, or
/// Goodbye.
struct Message {
  enum class Kind : uint32_t { Hello, Welcome, Beat, Failure, Loss, Goodbye };
  static constexpr uint32_t kMagic = 0x31434374; ///< "tCC1"

  uint32_t magic = kMagic;
  Kind kind = Kind::Beat;
  uint64_t token = 0; ///< that the run has
  Sighting own = {};  ///< who says it, and where that is
  Loss loss = {};     ///< that Loss tells; how long the call of a Failure took,
                      ///< and why it failed

  /// Whether its parts have values that they may have, and texts an end.
  bool isValid() const;
};

/// Whether a text that came in has its 0.
template <size_t size> bool hasEnd(const char (&text)[size]) {
  return std::memchr(text, 0, size) != nullptr;
}

/// Owns an open file of the system.
class File {
public:
  explicit File(int number = -1) : number(number) {}
  File(File &&other) noexcept : number(std::exchange(other.number, -1)) {}
  File &operator=(File &&other) noexcept {
    std::swap(number, other.number);
    return *this;
  }
  ~File() { close(); }

  bool isOpen() const { return number >= 0; }
  int get() const { return number; }
  void close();

private:
  int number;
};

/// A way to another process for whole messages; none of its calls but `open`
/// waits. Whatever goes wrong ends it.
class Connection {
public:
  using Clock = std::chrono::steady_clock;

  Connection() = default;
  /// Takes a socket that is connected.
  explicit Connection(File socket);

  /// Tries all addresses of the host, each until the deadline at most.
  static Result<Connection> open(const std::string &host, uint16_t port,
                                 Clock::time_point deadline);

  bool isOpen() const { return socket.isOpen(); }
  int file() const { return socket.get(); }
  void close() { socket.close(); }

  /// Writes as much as the system takes; the rest comes with `flush`.
  void send(const Message &message);
  bool hasUnsent() const { return !unsent.empty(); }
  void flush();

  enum class Found { Nothing, Message, End };
  /// Closes the connection where the other end did, or sent what is none of our
  /// messages.
  Found receive(Message &message);
  /// Receives like `receive`, but waits until the deadline.
  Found await(Message &message, Clock::time_point deadline);

private:
  File socket;
  std::vector<std::byte> unsent;
  Message incoming;
  size_t received = 0; ///< bytes of `incoming`
};

/// A socket where connections come in.
class Listener {
public:
  /// Listens at the loopback device if the host is one of its addresses, else
  /// at all devices, as for an empty host; at any port that is free.
  static Result<Listener> open(const std::string &host);

  bool isOpen() const { return socket.isOpen(); }
  int file() const { return socket.get(); }
  uint16_t port() const;
  void close() { socket.close(); }
  enum class Found { Nobody, Connection, NoFile };
  /// NoFile where somebody came, but this process or the system has as many
  /// files open as it may.
  Found accept(Connection &come);

private:
  File socket;
};

/// The addresses of this machine by which others may reach it, the loopback
/// device's first, with a space between two.
std::string listOwnAddresses();

} // namespace tcc::runtime

#endif // TCC_RUNTIME_RANKS_CONNECTION_H
