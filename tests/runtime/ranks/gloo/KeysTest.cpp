#include "runtime/ranks/gloo/KeyClient.h"
#include "runtime/ranks/gloo/KeyServer.h"
#include "tests/runtime/Fixture.h"

#include <arpa/inet.h>
#include <atomic>
#include <ctime>
#include <dlfcn.h>
#include <netdb.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::runtime::ranks;
using namespace tcc::tests;
using namespace std::chrono_literals;

static constexpr char kHost[] = "127.0.0.1";

static std::unique_ptr<KeyClient>
connect(uint16_t port, std::chrono::milliseconds patience = 10s) {
  return unwrap(
      KeyClient::connect(kHost, port, KeyClient::Clock::now() + patience));
}

static Result<std::unique_ptr<KeyServer>> listenAt(uint16_t port,
                                                   const char *host = kHost) {
  return KeyServer::listen(host, port, KeyClient::Clock::now() + 50ms);
}

static std::vector<char> bytes(std::string_view text) {
  return {text.begin(), text.end()};
}

TEST(Keys, ArriveAtAllWhoWait) {
  auto server = unwrap(listenAt(0));
  auto setter = connect(server->port()), early = connect(server->port());
  std::vector<char> found;
  std::thread waiting([&] { found = unwrap(early->get("k")); });
  std::this_thread::sleep_for(10ms);
  std::string value("a\0b", 3);
  ASSERT_THAT(setter->set("k", value), succeeds());
  waiting.join();
  EXPECT_EQ(found, bytes(value));
  EXPECT_EQ(unwrap(connect(server->port())->get("k")), bytes(value));
  EXPECT_EQ(setter->ownAddress(), kHost);
}

/// What others may have read already stays as it is.
TEST(Keys, AreSetOnce) {
  auto server = unwrap(listenAt(0));
  auto client = connect(server->port());
  ASSERT_THAT(client->set("k", bytes("1")), succeeds());
  EXPECT_THAT(client->set("k", bytes("2")),
              failsWith(Code::Usage, "'k' is taken"));
  EXPECT_EQ(unwrap(client->get("k")), bytes("1"));
  ASSERT_THAT(client->set("empty", {}), succeeds());
  EXPECT_EQ(unwrap(client->get("empty")), bytes(""));
}

TEST(Keys, AreAwaitedUntilTheDeadline) {
  auto server = unwrap(listenAt(0));
  auto client = connect(server->port(), 100ms);
  EXPECT_THAT(client->get("never").takeStatus(),
              failsWith(Code::Peer, "no word in time"));
  EXPECT_FALSE(client->set("k", {}).ok()) << "the connection is closed";
}

TEST(Keys, FailWhereTheServerGoesAway) {
  auto server = unwrap(listenAt(0));
  auto client = connect(server->port());
  std::thread ending([&] {
    std::this_thread::sleep_for(10ms);
    server.reset();
  });
  EXPECT_THAT(client->get("never").takeStatus(),
              failsWith(Code::Peer, "no word from rank 0"));
  ending.join();
}

/// Who waits, or asks later, hears at once which client will set no more.
TEST(Keys, FailWhereAClientGoesAway) {
  auto server = unwrap(listenAt(0));
  auto waiting = connect(server->port()), later = connect(server->port());
  connect(server->port()); // one that has set nothing is not missed
  auto leaving = connect(server->port());
  ASSERT_THAT(leaving->set("rank 2", bytes("3")), succeeds());
  std::thread ending([&] {
    std::this_thread::sleep_for(10ms);
    leaving.reset();
  });
  auto before = KeyClient::Clock::now();
  EXPECT_THAT(waiting->get("never").takeStatus(),
              failsWith(Code::Peer, "rank 2 ended before all ranks had met"));
  EXPECT_LT(KeyClient::Clock::now() - before, 1s);
  EXPECT_TRUE(waiting->hasReason());
  ending.join();
  EXPECT_EQ(unwrap(later->get("rank 2")), bytes("3"));
  EXPECT_THAT(later->get("never").takeStatus(),
              failsWith(Code::Peer, "rank 2 ended"));
  // One that goes while it waits itself.
  auto other = unwrap(listenAt(0));
  auto last = connect(other->port()), first = connect(other->port(), 100ms);
  ASSERT_THAT(first->set("rank 1", {}), succeeds());
  EXPECT_THAT(first->get("never").takeStatus(),
              failsWith(Code::Peer, "no word in time"));
  first.reset();
  EXPECT_THAT(last->get("never").takeStatus(),
              failsWith(Code::Peer, "rank 1 ended"));
}

/// Who gives up because it waited too long says for whom.
TEST(Keys, FailWithTheReasonOfTheFirstThatGivesUp) {
  auto server = unwrap(listenAt(0));
  auto first = connect(server->port(), 100ms), second = connect(server->port());
  ASSERT_THAT(first->set("rank 1", {}), succeeds());
  std::thread ending([&] {
    EXPECT_FALSE(first->get("never").ok());
    EXPECT_FALSE(first->hasReason());
    first->giveUp("rank 2 did not come");
    first.reset();
  });
  EXPECT_THAT(second->get("never").takeStatus(),
              failsWith(Code::Peer, "rank 2 did not come"));
  ending.join();
  EXPECT_THAT(connect(server->port())->get("never").takeStatus(),
              failsWith(Code::Peer, "rank 2 did not come"));
}

/// A client may be there before its server.
TEST(Keys, AreAskedForAgainUntilThereIsAServer) {
  uint16_t port = unwrap(listenAt(0))->port();
  std::unique_ptr<KeyServer> server;
  std::thread late([&] {
    std::this_thread::sleep_for(60ms);
    server = unwrap(listenAt(port));
  });
  EXPECT_THAT(connect(port)->set("k", {}), succeeds());
  late.join();
}

TEST(Keys, NameWrongAddresses) {
  auto connect = [](const char *host, uint16_t port) {
    return KeyClient::connect(host, port, KeyClient::Clock::now() + 50ms)
        .takeStatus();
  };
  auto server = unwrap(listenAt(0));
  EXPECT_THAT(listenAt(server->port()).takeStatus(),
              failsWith(Code::Usage, "rank 0 cannot listen at port"));
  uint16_t port = server->port();
  server.reset();
  EXPECT_THAT(connect(kHost, port),
              failsWith(Code::Peer, "there is no rank 0"));
  EXPECT_THAT(connect("no host", port), failsWith(Code::Usage, "'no host'"));
  EXPECT_THAT(listenAt(port, "no host").takeStatus(),
              failsWith(Code::Usage, "'no host'"));
}

/// Something else that listens there says nothing that was asked for.
TEST(Keys, NameServersOfOthers) {
  int other = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in place = {};
  place.sin_family = AF_INET;
  inet_pton(AF_INET, kHost, &place.sin_addr);
  socklen_t size = sizeof(place);
  auto *address = reinterpret_cast<sockaddr *>(&place);
  ASSERT_EQ(bind(other, address, size), 0);
  ASSERT_EQ(listen(other, 1), 0);
  getsockname(other, address, &size);
  std::thread serving([&] {
    int client = accept(other, nullptr, nullptr);
    EXPECT_EQ(write(client, "SSH-2.0-x", 9), 9);
    close(client);
  });
  EXPECT_THAT(KeyClient::connect(kHost, ntohs(place.sin_port),
                                 KeyClient::Clock::now() + 5s)
                  .takeStatus(),
              failsWith(Code::Usage, "is no rendezvous of this tcc-run"));
  serving.join();
  close(other);
}

/// Before that it is unknown, as that of a pod which has just begun.
static std::atomic<int> lookupsUntilKnown = 0;
static constexpr char kLate[] = "late-host.invalid";

/// In place of the system's, which it asks.
extern "C" int getaddrinfo(const char *host, const char *service,
                           const addrinfo *hints, addrinfo **found) {
  static auto ask =
      reinterpret_cast<decltype(&getaddrinfo)>(dlsym(RTLD_NEXT, "getaddrinfo"));
  bool isLate = host && std::string_view(host) == kLate;
  if (isLate && lookupsUntilKnown-- > 0)
    return EAI_NONAME;
  return ask(isLate ? kHost : host, service, hints, found);
}

TEST(Keys, FindAHostThatIsKnownLate) {
  auto server = unwrap(listenAt(0));
  lookupsUntilKnown = 2;
  auto client =
      KeyClient::connect(kLate, server->port(), KeyClient::Clock::now() + 10s);
  ASSERT_TRUE(client.ok()) << client.takeStatus().message();
  EXPECT_THAT((*client)->set("k", {}), succeeds());
  lookupsUntilKnown = 2;
  uint16_t port = server->port();
  server.reset();
  EXPECT_TRUE(
      KeyServer::listen(kLate, port, KeyClient::Clock::now() + 10s).ok());
}

/// Where there is no file for a connection, the server does not ask for it all
/// the time.
TEST(Keys, WaitForFilesWithoutWork) {
  auto server = unwrap(listenAt(0));
  auto first = connect(server->port()); // it serves
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  auto late = [&] {
    int probe = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in place = {};
    place.sin_family = AF_INET;
    place.sin_port = htons(server->port());
    inet_pton(AF_INET, kHost, &place.sin_addr);
    rlimit none = before;
    none.rlim_cur = rlim_t(probe) + 1;
    setrlimit(RLIMIT_NOFILE, &none);
    EXPECT_EQ(
        ::connect(probe, reinterpret_cast<sockaddr *>(&place), sizeof(place)),
        0);
    return probe;
  }();
  std::clock_t used = std::clock();
  std::this_thread::sleep_for(400ms);
  used = std::clock() - used;
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_LT(double(used) / CLOCKS_PER_SEC, 0.1);
  close(late);
  EXPECT_THAT(connect(server->port())->set("k", {}), succeeds());
}

/// Clients of others are let go, and the server serves on.
TEST(Keys, SurviveClientsOfOthers) {
  auto server = unwrap(listenAt(0));
  for (std::string_view sent :
       {"GET / HTTP/1.1\r\n\r\n", "tcckeys2\xff\xff\xff\xff\xff\xff\xff\xff"
                                  "\xff\xff\xff\xff"}) {
    int client = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in place = {};
    place.sin_family = AF_INET;
    place.sin_port = htons(server->port());
    inet_pton(AF_INET, kHost, &place.sin_addr);
    ASSERT_EQ(
        ::connect(client, reinterpret_cast<sockaddr *>(&place), sizeof(place)),
        0);
    ASSERT_EQ(write(client, sent.data(), sent.size()), ssize_t(sent.size()));
    char answer[64];
    while (read(client, answer, sizeof(answer)) > 0)
      ;
    close(client);
  }
  EXPECT_THAT(connect(server->port())->set("k", {}), succeeds());
}
