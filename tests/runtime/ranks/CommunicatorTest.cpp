// Communicators over a transport that is made up: ranks are threads.

#include "runtime/ranks/Build.h"
#include "runtime/ranks/OpenCommunicator.h"
#include "runtime/ranks/Watch.h"
#include "tests/runtime/Fixture.h"

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <map>
#include <thread>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::tests;
using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;

namespace {

constexpr char kOtherBuild[kBuildBytes] = "tcc 0.0.1, wire 1.00000000";

/// Where ranks exchange what they have.
struct Room {
  explicit Room(int size) : size(size), offers(size) {}

  const int size;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::vector<std::byte>> offers;
  int come = 0;
  uint64_t round = 0;
};

class RoomTransport final : public Transport {
public:
  RoomTransport(Room &room, int rank) : room(room), rank(rank) {}

  std::string_view name() const override { return "room"; }
  Status allReduce(const void *from, void *to, size_t count,
                   DType dtype) override {
    EXPECT_EQ(dtype, DType::i64);
    std::vector<int64_t> all(count * room.size);
    Status status = allGather(from, all.data(), count, dtype);
    for (size_t i = 0; status.ok() && i < count; ++i) {
      int64_t sum = 0;
      for (int other = 0; other < room.size; ++other)
        sum += all[other * count + i];
      static_cast<int64_t *>(to)[i] = sum;
    }
    return status;
  }
  Status reduceScatter(const void *, void *, size_t, DType) override {
    return Status(Code::Unsupported, "rooms have none");
  }
  Status allGather(const void *from, void *to, size_t count,
                   DType dtype) override {
    // The first exchange says the build.
    if (!std::exchange(hasSaidBuild, true) && isOfOtherBuild && rank == 1)
      from = kOtherBuild;
    return meet(from, to, count * traitsOf(dtype).bytes);
  }
  Status broadcast(const void *from, void *to, size_t count, DType dtype,
                   int root) override {
    size_t bytes = count * traitsOf(dtype).bytes;
    std::vector<std::byte> all(bytes * room.size);
    Status status = meet(from, all.data(), bytes);
    if (status.ok())
      std::memcpy(to, all.data() + bytes * root, bytes);
    // Rank 1 finds nobody there.
    if (isCutOff && rank == 1 && bytes == sizeof(HubPlace))
      static_cast<HubPlace *>(to)->port = 1;
    return status;
  }
  Status barrier() override { return meet(nullptr, nullptr, 0); }
  void setTimeout(std::chrono::milliseconds) override {}
  void abort() override {
    std::lock_guard lock(room.mutex);
    isAborted = true;
    room.changed.notify_all();
  }

  bool isCutOff = false, isOfOtherBuild = false;

private:
  /// to = what all ranks give.
  Status meet(const void *from, void *to, size_t bytes) {
    std::unique_lock lock(room.mutex);
    uint64_t own = room.round;
    auto *given = static_cast<const std::byte *>(from);
    room.offers[rank].assign(given, given + bytes);
    if (++room.come == room.size) {
      room.come = 0;
      ++room.round;
      room.changed.notify_all();
    }
    room.changed.wait(lock, [&] { return isAborted || room.round != own; });
    if (isAborted)
      return Status(Code::Peer, "aborted");
    for (int other = 0; other < room.size; ++other)
      std::copy_n(room.offers[other].data(), bytes,
                  static_cast<std::byte *>(to) + other * bytes);
    return leaveRound(lock, own);
  }
  /// All have taken what they came for before anybody offers more.
  Status leaveRound(std::unique_lock<std::mutex> &lock, uint64_t own) {
    if (++room.come == room.size) {
      room.come = 0;
      ++room.round;
      room.changed.notify_all();
    }
    room.changed.wait(lock, [&] { return isAborted || room.round > own + 1; });
    return isAborted ? Status(Code::Peer, "aborted") : Status();
  }

  Room &room;
  const int rank;
  bool isAborted = false, hasSaidBuild = false;
};

} // namespace

/// Calls `work` for each rank, in a thread of its own.
static void runRoom(int size, const std::function<void(Communicator &)> &work,
                    std::chrono::milliseconds silence = 10s,
                    bool isCutOff = false) {
  Room room(size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      auto transport = std::make_unique<RoomTransport>(room, rank);
      transport->isCutOff = isCutOff;
      Communicator ranks(std::move(transport), rank, size);
      EXPECT_THAT(ranks.watch("127.0.0.1", {.silence = silence}), succeeds());
      work(ranks);
    });
  for (std::thread &thread : threads)
    thread.join();
}

static Status addUp(Communicator &ranks, const char *of) {
  int64_t value = ranks.rank() + 1, sum = 0;
  Status status = ranks.allReduce(&value, &sum, 1, DType::i64, of);
  if (status.ok()) {
    EXPECT_EQ(sum, ranks.size() * (ranks.size() + 1) / 2);
  }
  return status;
}

TEST(Communicator, RecordsWhatItIsCalledFor) {
  runRoom(2, [](Communicator &ranks) {
    EXPECT_EQ(ranks.name(), "room");
    EXPECT_EQ(ranks.note(), "");
    ASSERT_THAT(addUp(ranks, "a"), succeeds());
    ranks.setStep(3);
    uint8_t from = 1, to[2] = {};
    ASSERT_THAT(ranks.allGather(&from, to, 1, DType::u8), succeeds());
    ASSERT_THAT(ranks.close(), succeeds());
    std::vector<CollectiveCall> calls = ranks.collectives();
    ASSERT_EQ(calls.size(), 3u);
    EXPECT_EQ(calls[0].number, 1u);
    EXPECT_EQ(calls[0].kind, CollectiveKind::AllReduce);
    EXPECT_EQ(calls[0].dtype, DType::i64);
    EXPECT_STREQ(calls[0].of, "a");
    EXPECT_EQ(calls[0].step, 0);
    EXPECT_EQ(calls[1].kind, CollectiveKind::AllGather);
    EXPECT_EQ(calls[1].step, 3);
    EXPECT_EQ(calls[2].kind, CollectiveKind::Barrier);
    for (const CollectiveCall &call : calls)
      EXPECT_LE(call.begin, call.end);
    EXPECT_THAT(addUp(ranks, "b"), failsWith(Code::Peer, "have ended"));
  });
}

/// The call under way ends at all ranks, with one line.
TEST(Communicator, NamesTheRankThatLeft) {
  runRoom(3, [](Communicator &ranks) {
    ranks.setStep(5);
    ASSERT_THAT(addUp(ranks, "a"), succeeds());
    if (ranks.rank() == 1)
      return ranks.leave();
    auto before = std::chrono::steady_clock::now();
    Status status = addUp(ranks, "b");
    EXPECT_LT(std::chrono::steady_clock::now() - before, 1s);
    EXPECT_EQ(status.code(), Code::Peer);
    std::string own = concat("this is rank ", ranks.rank(), " (host ");
    EXPECT_THAT(std::string(status.message()),
                AllOf(testing::StartsWith("rank 1 (host "),
                      HasSubstr("was lost: it left after an error"),
                      HasSubstr("last heard of at update 5 after all-reduce 1 "
                                "of a; "),
                      HasSubstr(own),
                      testing::EndsWith("at update 5 in all-reduce 2 of b")));
    EXPECT_EQ(std::string(addUp(ranks, "c").message()), status.message());
    EXPECT_EQ(ranks.collectives().back().end, -1);
  });
}

/// Beats come from a thread of their own.
TEST(Communicator, WaitsForARankThatIsSlow) {
  runRoom(
      3,
      [](Communicator &ranks) {
        if (ranks.rank() != 1)
          std::this_thread::sleep_for(800ms);
        EXPECT_THAT(addUp(ranks, "a"), succeeds());
        EXPECT_THAT(ranks.close(), succeeds());
      },
      500ms);
}

/// All know it, and train on.
TEST(Communicator, GoesOnWithoutHeartbeats) {
  runRoom(
      3,
      [](Communicator &ranks) {
        EXPECT_THAT(std::string(ranks.note()),
                    AllOf(HasSubstr("without heartbeats: rank 1: "),
                          HasSubstr("127.0.0.1:1: Connection refused")));
        ASSERT_THAT(addUp(ranks, "a"), succeeds());
        EXPECT_THAT(ranks.close(), succeeds());
      },
      10s, /*isCutOff=*/true);
}

/// Before they say anything that another build may have another size of.
TEST(Communicator, NamesARankOfAnotherBuild) {
  Room room(3);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 3; ++rank)
    threads.emplace_back([&, rank] {
      auto transport = std::make_unique<RoomTransport>(room, rank);
      transport->isOfOtherBuild = true;
      Communicator ranks(std::move(transport), rank, 3);
      EXPECT_THAT(ranks.watch("127.0.0.1", {}),
                  failsWith(Code::Usage,
                            concat("ranks are of several builds: rank 1 is tcc "
                                   "0.0.1, wire 1.00000000, rank 0 is ",
                                   nameBuild())));
    });
  for (std::thread &thread : threads)
    thread.join();
}

TEST(Communicator, ComparesDigests) {
  runRoom(3, [](Communicator &ranks) {
    format::Digest digest = {};
    EXPECT_THAT(ranks.compare(digest, "other flags"), succeeds());
    digest.bytes[0] = ranks.rank() == 2;
    EXPECT_THAT(ranks.compare(digest, "other flags"),
                failsWith(Code::Usage, "rank 2 has other flags than rank 0"));
    EXPECT_THAT(ranks.close(), succeeds());
  });
}

TEST(Patience, IsWhatTheEnvironmentSays) {
  std::map<std::string, std::string> values;
  auto read = [&] {
    return readPatience([&](const char *name) -> const char * {
      auto found = values.find(name);
      return found == values.end() ? nullptr : found->second.c_str();
    });
  };
  EXPECT_EQ(unwrap(read()).silence, 10s);
  values["TCC_HEARTBEAT"] = "2.5";
  EXPECT_EQ(unwrap(read()).silence, 2500ms);
  values["TCC_HEARTBEAT"] = "0";
  EXPECT_EQ(unwrap(read()).silence, 0s);
  EXPECT_EQ(unwrap(read()).collective, 10min);
  values["TCC_COLLECTIVE_TIMEOUT"] = "90";
  EXPECT_EQ(unwrap(read()).collective, 90s);
  values["TCC_COLLECTIVE_TIMEOUT"] = "0.05";
  EXPECT_THAT(read().takeStatus(),
              failsWith(Code::Usage, "TCC_COLLECTIVE_TIMEOUT is '0.05', "
                                     "expected 0.1 s to 86400 s, or 0"));
  values.erase("TCC_COLLECTIVE_TIMEOUT");
  for (const char *text :
       {"", "-1", "0.01", "1e9", "ten", "1s", "nan", "inf"}) {
    values["TCC_HEARTBEAT"] = text;
    EXPECT_THAT(read().takeStatus(),
                failsWith(Code::Usage, concat("TCC_HEARTBEAT is '", text,
                                              "', expected 0.1 s to 86400 s")))
        << text;
  }
}
