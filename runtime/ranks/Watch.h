//===- Watch.h - Ranks give word that they are there ------------*- C++ -*-===//
//
// Each rank has a thread that does nothing else, and a connection to rank 0,
// the hub; the others are members. All say four times a second where they are.
// The hub tells all of a rank whose connection ended or that is silent; members
// find for themselves that the hub is lost. Whoever learns of a loss ends what
// its transport does.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_RUNTIME_RANKS_WATCH_H
#define TCC_RUNTIME_RANKS_WATCH_H

#include "runtime/ranks/Connection.h"

#include <condition_variable>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace tcc::runtime {

/// Where the hub is, which it tells the others by the transport.
struct HubPlace {
  uint64_t token = 0;   ///< of the run: whoever says it belongs to it
  uint32_t silence = 0; ///< milliseconds; 0: for ever
  uint32_t port = 0;    ///< 0: nowhere
  char hosts[496] = {}; ///< with a space between two; ends with 0
};

/// Its calls come from one thread at a time.
class Watch {
public:
  using Milliseconds = std::chrono::milliseconds;

  /// The hub of `size` ranks, at the host, or at all addresses if it is empty.
  /// The recorder outlives it.
  static Result<std::unique_ptr<Watch>> listen(int size,
                                               const Recorder &recorder,
                                               const std::string &host,
                                               Milliseconds silence);
  /// A member, which waits until the hub answers, a few seconds at most.
  static Result<std::unique_ptr<Watch>> join(int rank, const Recorder &recorder,
                                             const HubPlace &place);
  /// Without `leave` or `sayGoodbye` before, the rank leaves.
  ~Watch();

  /// Of the hub.
  const HubPlace &place() const { return hub; }

  /// All are connected: from now on who is lost is noticed. `abort`, called
  /// once, by the watch's own thread, is to end the transport's call.
  void begin(std::function<void()> abort);

  std::optional<Loss> findLoss();
  /// A call of the transport failed that began so long ago: who is to blame?
  /// Returns within seconds; nothing if nobody says.
  std::optional<Loss> explain(std::string_view why, Milliseconds ago);

  /// This rank does not go on; it tells the others the loss that it knows, else
  /// that it had an error. No other call follows.
  void leave();
  /// All ranks have done their part. No other call follows.
  void sayGoodbye();

private:
  using Clock = Connection::Clock;
  using Time = Clock::time_point;

  /// The other end of a connection: of a member the hub alone.
  struct Peer {
    Connection connection;
    Sighting last = {};
    Time heard = Clock::now();
    bool isDone = false; ///< it said its last word
  };
  /// Of the hub: a call failed, at this rank or another, and who is to blame
  /// may come out yet.
  struct Failed {
    Message report;
    Time end; ///< of the hub's patience
  };

  Watch(int rank, const Recorder &recorder, const HubPlace &place);
  static Result<Connection> reach(const HubPlace &place, const Message &hello);
  Status start();

  bool isHub() const { return rank == 0; }
  Message say(Message::Kind kind) const;
  void wake() const;
  void stop(Message::Kind word);

  // What follows is of the watch's own thread.
  void run();
  bool turn();
  void sleep(Time until);
  Time nextTime() const;
  void welcomeNewcomers();
  void welcome(Connection member, const Sighting &own);
  void hear(Peer &peer);
  void take(Peer &peer, const Message &message);
  void forgetOwnPause(Time now);
  void judge(Time now);
  void takeFailure(const Message &report);
  Loss blame(const Message &report) const;
  void lose(const Loss &found);
  void tellAll(const Message &message);
  void beat(Time now);
  void endTransport(Time now);

  const int rank;
  const Recorder &recorder;
  HubPlace hub;
  Milliseconds silence, period; ///< between two beats
  File waker;                   ///< an eventfd
  Listener listener;            ///< of the hub, until all are there
  std::vector<Connection> newcomers;
  size_t memberCount = 0; ///< of the hub
  std::vector<Peer> peers;
  Time lastTurn, nextBeat;
  std::optional<Failed> failed;
  std::optional<Time> abortAt;
  bool watches = false; ///< `begin` was called, and nobody is lost or done

  std::mutex mutex; ///< of what follows
  std::condition_variable changed;
  std::function<void()> abort;       ///< given once, by `begin`
  std::optional<Message> lastWord;   ///< the thread is to end with it
  std::optional<Message> ownFailure; ///< that `explain` asks about
  std::optional<Loss> loss;
  bool hasBegun = false, isAlone = false; ///< alone: the hub said goodbye

  std::thread thread;
};

} // namespace tcc::runtime

#endif // TCC_RUNTIME_RANKS_WATCH_H
