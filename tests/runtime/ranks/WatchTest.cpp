// The hub of a watch with members that the test plays, and a member with a hub
// that the test plays.

#include "runtime/ranks/Watch.h"
#include "tests/runtime/Fixture.h"

#include <arpa/inet.h>
#include <atomic>
#include <ctime>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::tests;
using namespace std::chrono_literals;
using Clock = Connection::Clock;
using Kind = Message::Kind;
using Found = Connection::Found;

static constexpr char kHost[] = "127.0.0.1";
static constexpr auto kSoon = 5s;

namespace {

/// The other end of a watch, as the test plays it.
struct Player {
  int rank;
  uint64_t token;
  Connection connection;
  Position position = {};

  void say(Kind kind, const Loss &loss = {}) {
    Message message = {.kind = kind, .token = token, .loss = loss};
    message.own = {.rank = rank, .position = position};
    connection.send(message);
  }
  /// The next message but beats.
  std::optional<Message> hear(Clock::duration patience = kSoon) {
    Message message;
    auto end = Clock::now() + patience;
    while (connection.await(message, end) == Found::Message)
      if (message.kind != Kind::Beat)
        return message;
    return std::nullopt;
  }
  /// As one that is `number` collectives far.
  void reach(uint64_t number, const char *of = "", bool hasEnded = false) {
    position.step = int64_t(number);
    position.last.number = number;
    position.last.end = hasEnded ? 0 : -1;
    std::string_view(of).copy(position.last.of, sizeof(position.last.of) - 1);
    say(Kind::Beat);
  }
};

/// A hub and members that are played.
struct Hub {
  Recorder recorder;
  std::unique_ptr<Watch> watch;
  std::vector<Player> members; ///< from rank 1 on
  std::atomic<bool> isAborted = false;

  explicit Hub(int size, Watch::Milliseconds silence = 10s,
               Watch::Milliseconds collective = 0ms) {
    watch = unwrap(Watch::listen(
        size, recorder, kHost, {.silence = silence, .collective = collective}));
    for (int rank = 1; rank < size; ++rank)
      members.push_back(join(rank));
    watch->begin([this] { isAborted = true; });
  }
  Player join(int rank) const {
    const HubPlace &place = watch->place();
    Player member = {rank, place.token,
                     unwrap(Connection::open(place.hosts, uint16_t(place.port),
                                             Clock::now() + kSoon))};
    member.say(Kind::Hello);
    EXPECT_EQ(member.hear()->kind, Kind::Welcome);
    return member;
  }
};

/// A member whose hub is played.
struct Member {
  Recorder recorder;
  Listener listener = unwrap(Listener::open(kHost));
  std::unique_ptr<Watch> watch;
  Player hub{0, 7, {}};
  std::atomic<bool> isAborted = false;

  explicit Member(Watch::Milliseconds silence = 10s) {
    HubPlace place = {.token = hub.token,
                      .silence = uint32_t(silence.count()),
                      .port = listener.port(),
                      .hosts = "127.0.0.1"};
    std::thread joining(
        [&] { watch = unwrap(Watch::join(1, recorder, place)); });
    while (listener.accept(hub.connection) != Listener::Found::Connection)
      ;
    EXPECT_EQ(hub.hear()->kind, Kind::Hello);
    hub.say(Kind::Welcome);
    joining.join();
    watch->begin([this] { isAborted = true; });
  }
};

} // namespace

static bool waitUntil(const std::function<bool()> &condition,
                      Clock::duration patience = kSoon) {
  auto end = Clock::now() + patience;
  while (!condition() && Clock::now() < end)
    std::this_thread::sleep_for(2ms);
  return condition();
}

/// What it says, once it does.
static Loss awaitLoss(Watch &watch) {
  std::optional<Loss> found;
  EXPECT_TRUE(waitUntil([&] { return bool(found = watch.findLoss()); }));
  return found.value_or(Loss());
}

//===----------------------------------------------------------------------===//
// The hub
//===----------------------------------------------------------------------===//

/// All learn it within a second, with where the rank was.
TEST(Watch, NoticesARankThatDies) {
  Hub hub(3);
  hub.members[1].reach(37, "w");
  auto died = Clock::now();
  hub.members[1].connection.close();
  Loss loss = awaitLoss(*hub.watch);
  EXPECT_EQ(loss.who.rank, 2);
  EXPECT_EQ(loss.cause, Cause::Ended);
  EXPECT_EQ(describe(loss.who.position), "at update 37 in barrier 37 of w");
  EXPECT_TRUE(waitUntil([&] { return hub.isAborted.load(); }));
  EXPECT_LT(Clock::now() - died, 1s);
  std::optional<Message> told = hub.members[0].hear();
  ASSERT_TRUE(told && told->kind == Kind::Loss);
  EXPECT_EQ(told->loss.who.rank, 2);
  EXPECT_EQ(told->loss.who.position.last.number, 37u);
}

/// As one that is stopped, or cut off.
TEST(Watch, NoticesARankThatIsSilent) {
  auto begin = Clock::now();
  constexpr auto kSilence = 1500ms; // this thread may have to wait for a core
  Hub hub(3, kSilence);
  Loss loss;
  while (loss.who.rank < 0 && Clock::now() < begin + kSoon) {
    hub.members[0].say(Kind::Beat);
    std::this_thread::sleep_for(20ms);
    loss = hub.watch->findLoss().value_or(Loss());
  }
  EXPECT_EQ(loss.who.rank, 2);
  EXPECT_EQ(loss.cause, Cause::Silent);
  EXPECT_EQ(loss.milliseconds, kSilence.count());
  EXPECT_GE(Clock::now() - begin, kSilence);
  EXPECT_LT(Clock::now() - begin, kSoon);
  // It may read it once it goes on.
  EXPECT_EQ(hub.members[1].hear()->loss.who.rank, 2);
}

TEST(Watch, WaitsForeverWhereItIsTold) {
  Hub hub(2, 0ms);
  EXPECT_FALSE(waitUntil([&] { return bool(hub.watch->findLoss()); }, 400ms));
  hub.members[0].connection.close();
  EXPECT_EQ(awaitLoss(*hub.watch).cause, Cause::Ended);
}

/// Who did its part may end, at any time before or after others.
TEST(Watch, LetsRanksGoThatSayGoodbye) {
  Hub hub(3, 800ms);
  for (Player &member : hub.members) {
    member.say(Kind::Goodbye);
    member.connection.close();
  }
  EXPECT_FALSE(waitUntil([&] { return bool(hub.watch->findLoss()); }, 1200ms));
  hub.watch->sayGoodbye();
  EXPECT_FALSE(hub.isAborted);
}

/// Only the first loss counts: others end because of it.
TEST(Watch, TellsTheFirstLossAlone) {
  Hub hub(3);
  hub.members[0].say(Kind::Loss, {{.rank = 1}, Cause::Left});
  EXPECT_EQ(awaitLoss(*hub.watch).cause, Cause::Left);
  hub.members[0].connection.close();
  hub.members[1].connection.close();
  std::this_thread::sleep_for(50ms);
  EXPECT_EQ(hub.watch->findLoss()->who.rank, 1);
}

/// Who is lost may show after a call failed because of it.
TEST(Watch, BlamesTheRankThatEndedForACallThatFailed) {
  Hub hub(3);
  hub.members[0].say(Kind::Failure);
  std::this_thread::sleep_for(100ms);
  EXPECT_FALSE(hub.watch->findLoss());
  hub.members[1].connection.close();
  EXPECT_EQ(awaitLoss(*hub.watch).who.rank, 2);
  EXPECT_EQ(hub.members[0].hear()->loss.who.rank, 2);
}

TEST(Watch, BlamesTheRankWhoseCallFailedWhereAllAreThere) {
  Hub hub(3);
  hub.members[0].reach(5);
  hub.members[1].reach(4);
  hub.members[0].say(Kind::Failure, {.why = "cut"});
  Loss loss = awaitLoss(*hub.watch);
  EXPECT_EQ(loss.who.rank, 1) << "others may have come meanwhile";
  EXPECT_EQ(loss.cause, Cause::Failed);
  EXPECT_STREQ(loss.why, "cut");
}

/// Of a call that took long it is whoever did not come.
TEST(Watch, BlamesTheRankThatIsBehind) {
  Hub hub(3, 2s);
  for (int i = 1; i <= 5; ++i) {
    hub.recorder.begin(CollectiveKind::Barrier, 0, DType::u8, {});
    hub.recorder.end();
  }
  hub.members[0].reach(5, "w");
  hub.members[1].reach(4);
  hub.members[0].say(Kind::Failure, {.milliseconds = 700, .why = "too long"});
  Loss loss = awaitLoss(*hub.watch);
  EXPECT_EQ(loss.who.rank, 2);
  EXPECT_EQ(loss.cause, Cause::Behind);
  EXPECT_STREQ(loss.why, "at update 5 in barrier 5 of w");
  EXPECT_EQ(loss.milliseconds, 700u);
}

/// Who gives word, but does not come to what others wait in, is given up.
TEST(Watch, NoticesARankThatDoesNotCome) {
  constexpr auto kPatience = 600ms;
  Hub hub(4, 10s, kPatience);
  auto begin = Clock::now();
  hub.members[0].reach(5, "w");
  hub.members[1].reach(4, "", /*hasEnded=*/true);
  hub.members[2].reach(3, "", /*hasEnded=*/true);
  for (int i = 1; i <= 5; ++i)
    hub.recorder.begin(CollectiveKind::Barrier, 0, DType::u8, {});
  Loss loss = awaitLoss(*hub.watch);
  EXPECT_GE(Clock::now() - begin, kPatience);
  EXPECT_EQ(loss.who.rank, 3) << "the one that is farthest behind";
  EXPECT_EQ(loss.cause, Cause::Behind);
  EXPECT_EQ(loss.milliseconds, kPatience.count());
  EXPECT_EQ(describe(loss, {.rank = 1, .position = hub.members[0].position}),
            "rank 3 was lost: others waited for it for 0.6 s before the "
            "first update in barrier 5; it was last heard of at update 3 after "
            "barrier 3; this is rank 1 at update 5 in barrier 5 of w");
  EXPECT_TRUE(waitUntil([&] { return hub.isAborted.load(); }));
  EXPECT_EQ(hub.members[1].hear()->loss.who.rank, 3);
}

/// One that is slow each time, or that nobody waits for, is not lost.
TEST(Watch, WaitsForARankThatComesLate) {
  Hub hub(3, 10s, 700ms);
  auto end = Clock::now() + 1200ms;
  for (uint64_t number = 1; Clock::now() < end; ++number) {
    hub.recorder.begin(CollectiveKind::Barrier, 0, DType::u8, {});
    hub.recorder.end();
    hub.members[0].reach(number);
    std::this_thread::sleep_for(200ms);
    hub.members[1].reach(number - 1, "", /*hasEnded=*/true);
    EXPECT_FALSE(hub.watch->findLoss());
  }
  hub.members[0].reach(90, "", /*hasEnded=*/true); // a root goes ahead
  EXPECT_FALSE(waitUntil([&] { return bool(hub.watch->findLoss()); }, 1s));
}

/// What is no rank of the run has no say.
TEST(Watch, IgnoresStrangers) {
  Recorder recorder;
  auto watch = unwrap(Watch::listen(2, recorder, kHost, {}));
  Player member = {1, watch->place().token, {}};
  auto connect = [&] {
    return unwrap(Connection::open(kHost, uint16_t(watch->place().port),
                                   Clock::now() + kSoon));
  };
  Player stranger = {1, member.token + 1, connect()};
  stranger.say(Kind::Hello);
  EXPECT_FALSE(stranger.hear()) << "it is closed";
  Connection noise = connect();
  std::string request(sizeof(Message), 'G');
  EXPECT_EQ(write(noise.file(), request.data(), request.size()),
            ssize_t(request.size()));
  Message message;
  EXPECT_EQ(noise.await(message, Clock::now() + kSoon), Found::End);
  Connection idle = connect();
  member.connection = connect();
  member.say(Kind::Hello);
  EXPECT_EQ(member.hear()->kind, Kind::Welcome);
  watch->begin([] {});
  EXPECT_FALSE(waitUntil([&] { return bool(watch->findLoss()); }, 50ms));
}

/// Strangers that say nothing are closed, and keep no member out.
TEST(Watch, ClosesStrangersThatSayNothing) {
  Recorder recorder;
  auto watch = unwrap(Watch::listen(2, recorder, kHost, {}));
  std::vector<Connection> strangers;
  for (int i = 0; i < 40; ++i)
    strangers.push_back(unwrap(Connection::open(
        kHost, uint16_t(watch->place().port), Clock::now() + kSoon)));
  Message message;
  auto end = Clock::now() + 8s;
  for (Connection &stranger : strangers)
    EXPECT_EQ(stranger.await(message, end), Found::End);
  EXPECT_LT(Clock::now(), end);
  auto member = Watch::join(1, recorder, watch->place());
  EXPECT_TRUE(member.ok());
}

/// A member that finds no file at the hub is welcomed once there is one, and
/// meanwhile the hub keeps no core busy.
TEST(Watch, WaitsForFilesWithoutWork) {
  Recorder recorder;
  auto watch = unwrap(Watch::listen(2, recorder, kHost, {}));
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  Connection member;
  {
    File place(::socket(AF_INET, SOCK_STREAM, 0));
    rlimit none = before;
    none.rlim_cur = rlim_t(place.get()) + 1;
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(uint16_t(watch->place().port));
    inet_pton(AF_INET, kHost, &address.sin_addr);
    setrlimit(RLIMIT_NOFILE, &none);
    ASSERT_EQ(connect(place.get(), reinterpret_cast<sockaddr *>(&address),
                      sizeof(address)),
              0);
    member = Connection(std::move(place));
  }
  std::clock_t used = std::clock();
  std::this_thread::sleep_for(400ms);
  used = std::clock() - used;
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_LT(double(used) / CLOCKS_PER_SEC, 0.1);
  Player player = {1, watch->place().token, std::move(member)};
  player.say(Kind::Hello);
  Message answer;
  EXPECT_EQ(player.connection.await(answer, Clock::now() + kSoon),
            Found::Message);
  EXPECT_EQ(answer.kind, Kind::Welcome);
}

//===----------------------------------------------------------------------===//
// A member
//===----------------------------------------------------------------------===//

TEST(Watch, NoticesAHubThatDies) {
  Member member;
  member.hub.reach(3);
  member.hub.connection.close();
  Loss loss = awaitLoss(*member.watch);
  EXPECT_EQ(loss.who.rank, 0);
  EXPECT_EQ(loss.cause, Cause::Ended);
  EXPECT_EQ(loss.who.position.last.number, 3u);
  EXPECT_TRUE(waitUntil([&] { return member.isAborted.load(); }));
}

/// Its Welcome says already on which host it is.
TEST(Watch, KnowsTheHostOfAHubThatDiesAtOnce) {
  Recorder recorder;
  auto hub = unwrap(Watch::listen(2, recorder, kHost, {}));
  auto member = unwrap(Watch::join(1, recorder, hub->place()));
  member->begin([] {});
  hub.reset();
  EXPECT_STREQ(awaitLoss(*member).who.host, seeOwn(0, {}).host);
}

TEST(Watch, NoticesAHubThatIsSilent) {
  Member member(200ms);
  Loss loss = awaitLoss(*member.watch);
  EXPECT_EQ(loss.who.rank, 0);
  EXPECT_EQ(loss.cause, Cause::Silent);
  EXPECT_TRUE(waitUntil([&] { return member.isAborted.load(); }));
}

TEST(Watch, GoesOnAloneAfterTheHubsGoodbye) {
  Member member(800ms);
  member.hub.say(Kind::Goodbye);
  member.hub.connection.close();
  EXPECT_FALSE(
      waitUntil([&] { return bool(member.watch->findLoss()); }, 1200ms));
  auto before = Clock::now();
  EXPECT_FALSE(member.watch->explain("cut", 0ms));
  EXPECT_LT(Clock::now() - before, 1s) << "nobody is there to ask";
}

TEST(Watch, AsksTheHubWhomToBlame) {
  Member member;
  std::thread answering([&] {
    std::optional<Message> asked = member.hub.hear();
    ASSERT_TRUE(asked && asked->kind == Kind::Failure);
    EXPECT_STREQ(asked->loss.why, "cut");
    EXPECT_EQ(asked->loss.milliseconds, 40u);
    member.hub.say(Kind::Loss, {{.rank = 2}, Cause::Ended});
  });
  std::optional<Loss> loss = member.watch->explain("cut", 40ms);
  answering.join();
  ASSERT_TRUE(loss);
  EXPECT_EQ(loss->who.rank, 2);
}

TEST(Watch, SaysWhyItLeaves) {
  Member first, second;
  first.watch.reset();
  std::optional<Message> said = first.hub.hear();
  ASSERT_TRUE(said && said->kind == Kind::Loss);
  EXPECT_EQ(said->loss.who.rank, 1);
  EXPECT_EQ(said->loss.cause, Cause::Left);
  second.hub.say(Kind::Loss, {{.rank = 2}, Cause::Ended});
  EXPECT_EQ(awaitLoss(*second.watch).who.rank, 2);
  second.watch->leave();
  EXPECT_EQ(second.hub.hear()->loss.who.rank, 2);
}

TEST(Watch, SaysWhereThereIsNoHub) {
  Recorder recorder;
  HubPlace place = {.hosts = "127.0.0.1 127.0.0.1"};
  auto join = [&] { return Watch::join(1, recorder, place).takeStatus(); };
  {
    Listener listener = unwrap(Listener::open(kHost));
    place.port = listener.port();
  }
  EXPECT_THAT(join(), failsWith(Code::Peer, "Connection refused"));
  place.port = 0;
  place.hosts[0] = 0;
  EXPECT_THAT(join(), failsWith(Code::Peer, "no address"));
  place = {.hosts = "no-host.invalid"};
  EXPECT_THAT(join(), failsWith(Code::Peer, "host 'no-host.invalid'"));
  std::ranges::fill(place.hosts, '1');
  EXPECT_THAT(join(), failsWith(Code::Peer, "addresses of rank 0 have no end"));
  // Somebody else that listens there.
  Listener listener = unwrap(Listener::open(kHost));
  place = {.port = listener.port(), .hosts = "127.0.0.1"};
  std::thread other([&] {
    Connection come;
    while (listener.accept(come) != Listener::Found::Connection)
      ;
    EXPECT_EQ(write(come.file(), "SSH-2.0-x", 9), 9);
  });
  EXPECT_THAT(join(), failsWith(Code::Peer, "is not rank 0"));
  other.join();
}

/// One that does not read loses beats, not what matters, and costs nothing.
TEST(Watch, KeepsMessagesWhole) {
  Listener listener = unwrap(Listener::open(kHost));
  Connection from =
      unwrap(Connection::open(kHost, listener.port(), Clock::now() + kSoon));
  Connection to;
  while (listener.accept(to) != Listener::Found::Connection)
    ;
  Message message;
  uint64_t sent = 0, found = 0;
  for (; !from.hasUnsent(); ++sent) {
    message.token = sent;
    from.send(message);
  }
  while (found < sent) {
    from.flush();
    Found next = to.receive(message);
    ASSERT_NE(next, Found::End);
    if (next == Found::Message) {
      ASSERT_EQ(message.token, found++);
    }
  }
  EXPECT_FALSE(from.hasUnsent());
}
