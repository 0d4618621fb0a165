//===- Watch.h - Ranks give word that they are there ------------*- C++ -*-===//
//
// Each rank has a thread that does nothing else, and a connection to rank 0,
// the hub; the others are members. All say four times a second where they are.
// The hub tells all of a rank whose connection ended, that is silent, or that
// does not come to a collective; members find for themselves that the hub is
// lost. Whoever learns of a loss ends what its transport does.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_RUNTIME_RANKS_WATCH_H
#define TCC_RUNTIME_RANKS_WATCH_H

#include "runtime/ranks/Connection.h"
#include "runtime/ranks/Patience.h"

#include <condition_variable>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace tcc::runtime {

/// Where the hub is and how long ranks wait, which it tells the others by the
/// transport.
struct HubPlace {
  uint64_t token = 0;      ///< that the run has: whoever says it is part
  uint32_t silence = 0;    ///< milliseconds, see Patience; 0: for ever
  uint32_t collective = 0; ///< likewise
  uint32_t port = 0;       ///< 0: nowhere
  char hosts[492] = {};    ///< with a space between two; ends with 0
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
                                               const Patience &patience);
  /// A member, which waits until the hub answers, a few seconds at most.
  static Result<std::unique_ptr<Watch>> join(int rank, const Recorder &recorder,
                                             const HubPlace &place);
  /// Without `leave` or `sayGoodbye` before, the rank leaves.
  ~Watch();

  /// Where the hub is: of the hub its own place.
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

  /// How long others have been in a collective that a rank has not begun.
  struct Lag {
    uint64_t number = 0; ///< that the rank's last collective has
    Time since = Clock::now();
  };
  /// The other end of a connection: of a member the hub alone.
  struct Peer {
    Connection connection;
    Sighting last = {};
    Lag lag = {}; ///< kept by the hub
    Time heard = Clock::now();
    bool isDone = false; ///< it said its last word
  };
  /// Whoever connected to the hub and has not yet said which rank it is.
  struct Newcomer {
    Connection connection;
    Time end; ///< when the hub closes it
  };
  /// A call that failed, at the hub or a member, for which the rank that is to
  /// blame may come out yet; the hub keeps it.
  struct Failed {
    Message report;
    Time end; ///< when the hub blames somebody
  };

  Watch(int rank, const Recorder &recorder, const HubPlace &place);
  static Result<Peer> reach(const HubPlace &place, const Message &hello);
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
  void acceptNewcomers(Time now);
  void welcomeNewcomers(Time now);
  void welcome(Connection member, const Sighting &own);
  void hear(Peer &peer);
  void take(Peer &peer, const Message &message);
  void forgetOwnPause(Time now);
  void judge(Time now);
  void judgeLags(Time now);
  void takeFailure(const Message &report);
  Loss blame(const Message &report) const;
  void lose(const Loss &found);
  void tellAll(const Message &message);
  void beat(Time now);
  void endTransport(Time now);

  const int rank;
  const Recorder &recorder;
  HubPlace hub;
  Milliseconds silence; ///< how long a rank may say nothing; 0: for ever
  Milliseconds period;  ///< between two beats
  File waker;           ///< an eventfd
  Listener listener;    ///< open at the hub, until all members are there
  Time nextAccept;      ///< before it there is no file for a connection
  std::vector<Newcomer> newcomers;
  size_t memberCount = 0; ///< members that the hub waits for
  std::vector<Peer> peers;
  Lag ownLag; ///< that others have of the hub itself
  Time lastTurn, nextBeat;
  std::optional<Failed> failed;
  std::optional<Time> abortAt;
  bool watches = false; ///< `begin` was called, and nobody is lost or done

  std::mutex mutex; ///< guards what follows
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
