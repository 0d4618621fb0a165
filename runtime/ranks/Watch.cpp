#include "runtime/ranks/Watch.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <poll.h>
#include <pthread.h>
#include <random>
#include <sys/eventfd.h>
#include <unistd.h>

using namespace tcc;
using namespace tcc::runtime;
using namespace std::chrono_literals;
using Kind = Message::Kind;

/// How long a member tries one address of the hub, and all of them.
static constexpr auto kTry = 2s, kTries = 10s;
/// How long a call may take that waits for a rank that ended: what that one
/// sent before is still on its way.
static constexpr auto kGrace = 250ms;
/// How long the hub waits for the rank that made another's call fail.
static constexpr auto kBlame = 500ms;
static constexpr auto kExplanation = 2s;
/// Strangers that the hub listens to at a time, each as long as a member tries.
static constexpr size_t kStrangers = 16;
/// How long the hub accepts nobody where it has no file for a connection.
static constexpr auto kNoFile = 250ms;

//===----------------------------------------------------------------------===//
// Other threads
//===----------------------------------------------------------------------===//

Watch::Watch(int rank, const Recorder &recorder, const HubPlace &place)
    : rank(rank), recorder(recorder), hub(place), silence(place.silence),
      period(place.silence > 0
                 ? std::clamp<Milliseconds>(silence / 40, 10ms, 250ms)
                 : 250ms) {}

Watch::~Watch() {
  if (thread.joinable())
    leave();
}

Message Watch::say(Kind kind) const {
  return {.kind = kind,
          .token = hub.token,
          .own = seeOwn(rank, recorder.position())};
}

Result<std::unique_ptr<Watch>> Watch::listen(int size, const Recorder &recorder,
                                             const std::string &host,
                                             const Patience &patience) {
  Result<Listener> listener = Listener::open(host);
  if (!listener.ok())
    return listener.takeStatus();
  std::random_device random;
  HubPlace place = {.token = uint64_t(random()) << 32 | random(),
                    .silence = uint32_t(patience.silence.count()),
                    .collective = uint32_t(patience.collective.count()),
                    .port = listener->port()};
  std::string hosts = host.empty() ? listOwnAddresses() : host;
  // Whole ones.
  if (hosts.size() >= sizeof(place.hosts))
    hosts.resize(hosts.rfind(' ', sizeof(place.hosts) - 1));
  hosts.copy(place.hosts, sizeof(place.hosts) - 1);
  std::unique_ptr<Watch> watch(new Watch(/*rank=*/0, recorder, place));
  watch->listener = std::move(*listener);
  watch->peers.reserve(size - 1);
  watch->memberCount = size - 1;
  if (Status status = watch->start(); !status.ok())
    return status;
  return watch;
}

Result<Watch::Peer> Watch::reach(const HubPlace &place, const Message &hello) {
  Status failure = makeError(Code::Peer, "rank 0 said no address");
  Time end = Clock::now() + kTries;
  std::string_view hosts = place.hosts;
  while (!hosts.empty() && Clock::now() < end) {
    std::string host(hosts.substr(0, hosts.find(' ')));
    hosts.remove_prefix(std::min(hosts.size(), host.size() + 1));
    Time limit = std::min(end, Clock::now() + kTry);
    auto opened = Connection::open(host, uint16_t(place.port), limit);
    if (!opened.ok()) {
      failure = opened.takeStatus();
      continue;
    }
    opened->send(hello);
    Message answer;
    if (opened->await(answer, limit) == Connection::Found::Message &&
        answer.kind == Kind::Welcome && answer.token == place.token)
      return Peer{std::move(*opened), answer.own};
    failure = makeError(Code::Peer, "what listens at ", host, ":", place.port,
                        " is not rank 0");
  }
  return failure;
}

Result<std::unique_ptr<Watch>> Watch::join(int rank, const Recorder &recorder,
                                           const HubPlace &place) {
  if (!hasEnd(place.hosts))
    return makeError(Code::Peer, "the addresses of rank 0 have no end");
  std::unique_ptr<Watch> watch(new Watch(rank, recorder, place));
  auto reached = reach(place, watch->say(Kind::Hello));
  if (!reached.ok())
    return reached.takeStatus();
  watch->peers.push_back(std::move(*reached));
  if (Status status = watch->start(); !status.ok())
    return status;
  return watch;
}

/// Signals are for the threads of the program.
Status Watch::start() {
  waker = File(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!waker.isOpen())
    return makeError(Code::Peer, "no eventfd: ", std::strerror(errno));
  lastTurn = nextBeat = Clock::now();
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  Status status;
  try {
    thread = std::thread([this] { run(); });
  } catch (const std::exception &) { // neither a thread nor memory for one
    status = Status(Code::OutOfMemory, "there is no thread for heartbeats");
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return status;
}

void Watch::wake() const {
  uint64_t one = 1;
  (void)!write(waker.get(), &one, sizeof(one));
}

void Watch::begin(std::function<void()> function) {
  std::lock_guard lock(mutex);
  abort = std::move(function);
  hasBegun = true;
  wake();
}

std::optional<Loss> Watch::findLoss() {
  std::lock_guard lock(mutex);
  return loss;
}

std::optional<Loss> Watch::explain(std::string_view why, Milliseconds ago) {
  std::unique_lock lock(mutex);
  if (!loss) {
    ownFailure = say(Kind::Failure);
    why.copy(ownFailure->loss.why, sizeof(ownFailure->loss.why) - 1);
    ownFailure->loss.milliseconds = static_cast<uint32_t>(
        std::min<int64_t>(ago.count(), std::numeric_limits<uint32_t>::max()));
    wake();
  }
  changed.wait_for(lock, kExplanation, [&] { return loss || isAlone; });
  return loss;
}

void Watch::stop(Kind word) {
  {
    std::lock_guard lock(mutex);
    lastWord = say(word);
    if (word == Kind::Loss)
      lastWord->loss = loss ? *loss : Loss{lastWord->own, Cause::Left};
    wake();
  }
  thread.join();
}

void Watch::leave() { stop(Kind::Loss); }
void Watch::sayGoodbye() { stop(Kind::Goodbye); }

//===----------------------------------------------------------------------===//
// The watch's own thread
//===----------------------------------------------------------------------===//

/// A rank without memory for its words is lost for the others.
void Watch::run() {
  pthread_setname_np(pthread_self(), "tcc-watch");
  try {
    while (turn())
      ;
  } catch (const std::exception &) {
    peers.clear();
  }
}

/// False after the last word.
bool Watch::turn() {
  sleep(nextTime());
  std::optional<Message> word, report;
  {
    std::lock_guard lock(mutex);
    word = lastWord;
    report = std::exchange(ownFailure, std::nullopt);
    watches = hasBegun && !loss && !isAlone;
  }
  if (report)
    takeFailure(*report);
  if (word) {
    tellAll(*word);
    return false;
  }
  Time now = Clock::now();
  forgetOwnPause(now);
  acceptNewcomers(now);
  welcomeNewcomers(now);
  for (Peer &peer : peers)
    hear(peer);
  judge(now);
  beat(now);
  endTransport(now);
  return true;
}

Watch::Time Watch::nextTime() const {
  Time next = nextBeat;
  if (abortAt)
    next = std::min(next, *abortAt);
  if (failed && watches)
    next = std::min(next, failed->end);
  return next;
}

/// Until something comes in, or another thread wants something.
void Watch::sleep(Time until) {
  std::vector<pollfd> polled = {{waker.get(), POLLIN, 0}};
  if (Clock::now() >= nextAccept)
    polled.push_back({listener.file(), POLLIN, 0});
  for (const Newcomer &newcomer : newcomers)
    polled.push_back({newcomer.connection.file(), POLLIN, 0});
  for (const Peer &peer : peers) {
    short events = peer.connection.hasUnsent() ? POLLIN | POLLOUT : POLLIN;
    polled.push_back({peer.connection.file(), events, 0});
  }
  auto left = std::chrono::ceil<Milliseconds>(until - Clock::now());
  poll(polled.data(), polled.size(), int(std::max<int64_t>(0, left.count())));
  uint64_t calls = 0;
  (void)!read(waker.get(), &calls, sizeof(calls));
}

/// A rank that was not welcomed in time comes again, by another address.
void Watch::welcome(Connection member, const Sighting &own) {
  member.send(say(Kind::Welcome));
  auto isSame = [&](const Peer &peer) { return peer.last.rank == own.rank; };
  auto known = std::ranges::find_if(peers, isSame);
  if (known == peers.end())
    peers.push_back({std::move(member), own});
  else
    known->connection = std::move(member);
}

/// Where there is no file for one more, others are asked again a little later:
/// until then they keep the listener readable.
void Watch::acceptNewcomers(Time now) {
  using Found = Listener::Found;
  if (!listener.isOpen() || now < nextAccept)
    return;
  Connection come;
  Found found;
  while ((found = listener.accept(come)) == Found::Connection)
    if (newcomers.size() < memberCount + kStrangers)
      newcomers.push_back({std::move(come), now + kTry});
  if (found == Found::NoFile)
    nextAccept = now + kNoFile;
}

/// Whoever knows the run's token is one of its ranks.
void Watch::welcomeNewcomers(Time now) {
  if (!listener.isOpen())
    return;
  for (Newcomer &newcomer : newcomers) {
    Message hello;
    if (newcomer.connection.receive(hello) != Connection::Found::Message)
      continue;
    bool isMember = hello.kind == Kind::Hello && hello.token == hub.token &&
                    hello.own.rank > 0 && size_t(hello.own.rank) <= memberCount;
    Connection known = std::move(newcomer.connection);
    if (isMember)
      welcome(std::move(known), hello.own);
  }
  std::erase_if(newcomers, [&](const Newcomer &one) {
    return !one.connection.isOpen() || now >= one.end;
  });
  if (peers.size() == memberCount) {
    listener.close();
    newcomers.clear();
  }
}

void Watch::hear(Peer &peer) {
  using Found = Connection::Found;
  peer.connection.flush();
  Message message;
  Found found;
  while ((found = peer.connection.receive(message)) == Found::Message)
    take(peer, message);
  if (found == Found::End && watches && !std::exchange(peer.isDone, true))
    lose({peer.last, Cause::Ended});
}

void Watch::take(Peer &peer, const Message &message) {
  peer.heard = Clock::now();
  int32_t sender = peer.last.rank;
  peer.last = message.own;
  peer.last.rank = sender;
  switch (message.kind) {
  case Kind::Hello:
  case Kind::Welcome:
  case Kind::Beat:
    return;
  case Kind::Failure:
    return takeFailure(message);
  case Kind::Loss:
    peer.isDone = true;
    return lose(message.loss);
  case Kind::Goodbye:
    peer.isDone = true;
    if (isHub())
      return;
    std::lock_guard lock(mutex);
    isAlone = true;
    changed.notify_all();
    return;
  }
}

/// Where this process was stopped, others may have been as well, as by Ctrl-Z.
void Watch::forgetOwnPause(Time now) {
  if (now - lastTurn > std::max<Clock::duration>(3 * period, silence / 2))
    for (Peer &peer : peers)
      peer.heard = peer.lag.since = ownLag.since = now;
  lastTurn = now;
}

void Watch::judge(Time now) {
  if (!watches)
    return;
  for (Peer &peer : peers)
    if (silence > 0ms && !peer.isDone && now - peer.heard > silence)
      return lose({peer.last, Cause::Silent, hub.silence});
  if (failed && now >= failed->end)
    lose(blame(failed->report));
}

/// Gives up, of the ranks that others have waited for too long, the one that is
/// farthest behind. Positions are those of the last beats.
void Watch::judgeLags(Time now) {
  const Milliseconds patience(hub.collective);
  if (!watches || !isHub() || patience == 0ms)
    return;
  const Sighting own = seeOwn(rank, recorder.position());
  const Sighting *waiting = nullptr, *late = nullptr;
  auto isAfter = [](const Sighting &one, const Sighting &other) {
    return one.position.last.number > other.position.last.number;
  };
  auto forAll = [&](auto call) {
    call(own, ownLag);
    for (Peer &peer : peers)
      if (!peer.isDone)
        call(peer.last, peer.lag);
  };
  forAll([&](const Sighting &one, Lag &) {
    bool isWithin = one.position.last.end < 0;
    if (isWithin && (!waiting || isAfter(one, *waiting)))
      waiting = &one;
  });
  forAll([&](const Sighting &one, Lag &lag) {
    uint64_t number = one.position.last.number;
    if (!waiting || !isAfter(*waiting, one) || lag.number != number)
      lag = {number, now};
    else if (now - lag.since > patience && (!late || isAfter(*late, one)))
      late = &one;
  });
  if (!late)
    return;
  Loss loss = {*late, Cause::Behind, hub.collective};
  describe(waiting->position).copy(loss.why, sizeof(loss.why) - 1);
  lose(loss);
}

void Watch::takeFailure(const Message &report) {
  if (!isHub())
    return peers.front().connection.send(report);
  if (!failed)
    failed = {report, Clock::now() + kBlame};
}

/// For a call that took long the rank is to blame that is behind; what ranks
/// said is up to a period old.
Loss Watch::blame(const Message &report) const {
  const Sighting own = seeOwn(rank, recorder.position());
  const Sighting *last = &report.own;
  auto consider = [&](const Sighting &other) {
    if (other.position.last.number < last->position.last.number)
      last = &other;
  };
  if (Milliseconds(report.loss.milliseconds) >= 3 * period) {
    consider(own);
    for (const Peer &peer : peers)
      if (!peer.isDone)
        consider(peer.last);
  }
  Loss loss = {*last, Cause::Failed};
  std::string why = report.loss.why;
  if (last != &report.own) {
    loss.cause = Cause::Behind;
    loss.milliseconds = report.loss.milliseconds;
    why = describe(report.own.position);
  }
  why.copy(loss.why, sizeof(loss.why) - 1);
  return loss;
}

/// The first one counts: it is why others end, too.
void Watch::lose(const Loss &found) {
  {
    std::lock_guard lock(mutex);
    if (loss)
      return;
    loss = found;
    changed.notify_all();
  }
  watches = false;
  failed.reset();
  bool isOver = found.cause == Cause::Silent || found.cause == Cause::Behind;
  abortAt = Clock::now() + (isOver ? 0ms : kGrace);
  if (!isHub())
    return;
  Message message = say(Kind::Loss);
  message.loss = found;
  tellAll(message);
}

void Watch::tellAll(const Message &message) {
  for (Peer &peer : peers)
    if (peer.connection.isOpen())
      peer.connection.send(message);
}

/// One that does not read has beats enough.
void Watch::beat(Time now) {
  if (now < nextBeat)
    return;
  nextBeat = now + period;
  judgeLags(now);
  Message message = say(Kind::Beat);
  for (Peer &peer : peers)
    if (peer.connection.isOpen() && !peer.connection.hasUnsent())
      peer.connection.send(message);
}

void Watch::endTransport(Time now) {
  if (!abortAt || now < *abortAt)
    return;
  abortAt.reset();
  std::function<void()> function;
  {
    std::lock_guard lock(mutex);
    function = std::exchange(abort, nullptr);
  }
  if (function)
    function();
}
