#include "tests/runtime/Fixture.h"
#include "tests/runtime/ranks/Ranks.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::tests;
using namespace std::chrono_literals;

static constexpr DType kDTypes[] = {
    DType::f32, DType::f16, DType::bf16,   DType::f64, DType::i8,
    DType::i16, DType::i32, DType::i64,    DType::u8,  DType::u16,
    DType::u32, DType::u64, DType::boolean};
/// Fewer elements than ranks, and more than Gloo moves at a time.
static constexpr size_t kCounts[] = {0, 1, 2, 1000, 300001};

/// Whole numbers, of which all types have exact sums.
static int64_t valueOf(int rank, size_t i) {
  return (rank + 1) * static_cast<int64_t>(i % 1000 + 1);
}

namespace {

template <typename T> struct Sums {
  static constexpr DType dtype = std::is_same_v<T, float>     ? DType::f32
                                 : std::is_same_v<T, double>  ? DType::f64
                                 : std::is_same_v<T, int32_t> ? DType::i32
                                                              : DType::i64;

  static std::vector<T> make(int rank, size_t count) {
    std::vector<T> values(count);
    for (size_t i = 0; i < count; ++i)
      values[i] = static_cast<T>(valueOf(rank, i));
    return values;
  }
  static std::vector<T> sum(int size, size_t count) {
    std::vector<T> total(count);
    for (int rank = 0; rank < size; ++rank)
      for (size_t i = 0; i < count; ++i)
        total[i] += static_cast<T>(valueOf(rank, i));
    return total;
  }

  static void check(Communicator &ranks, size_t count) {
    std::vector<T> from = make(ranks.rank(), count), to(count);
    EXPECT_THAT(ranks.allReduce(from.data(), to.data(), count, dtype),
                succeeds());
    EXPECT_EQ(to, sum(ranks.size(), count));
    EXPECT_EQ(from, make(ranks.rank(), count)) << "it is only read";
    EXPECT_THAT(ranks.allReduce(from.data(), from.data(), count, dtype),
                succeeds());
    EXPECT_EQ(from, to) << "in place";
    size_t all = count * ranks.size();
    from = make(ranks.rank(), all);
    EXPECT_THAT(ranks.reduceScatter(from.data(), to.data(), count, dtype),
                succeeds());
    std::vector<T> total = sum(ranks.size(), all);
    auto own = total.begin() + count * ranks.rank();
    EXPECT_EQ(to, std::vector<T>(own, own + count));
    T *part = from.data() + count * ranks.rank();
    EXPECT_THAT(ranks.reduceScatter(from.data(), part, count, dtype),
                succeeds());
    EXPECT_TRUE(std::equal(own, own + count, part)) << "in place";
  }
};

} // namespace

TEST(Gloo, AddsUpExactly) {
  for (int size : {2, 3})
    runRanks(size, [&](Communicator &ranks) {
      EXPECT_EQ(ranks.size(), size);
      EXPECT_EQ(ranks.name(), "gloo");
      for (size_t count : kCounts) {
        Sums<float>::check(ranks, count);
        Sums<double>::check(ranks, count);
        Sums<int32_t>::check(ranks, count);
        Sums<int64_t>::check(ranks, count);
      }
    });
}

/// Sums that are rounded are the same bits at all ranks.
TEST(Gloo, GivesAllRanksTheSameBits) {
  constexpr size_t kCount = 5000;
  std::vector<float> sums[3];
  runRanks(3, [&](Communicator &ranks) {
    std::vector<float> &own = sums[ranks.rank()];
    for (size_t i = 0; i < kCount; ++i)
      own.push_back(1.0f / static_cast<float>(i + 7 * ranks.rank() + 1));
    EXPECT_THAT(ranks.allReduce(own.data(), own.data(), kCount, DType::f32),
                succeeds());
  });
  EXPECT_EQ(sums[0], sums[1]);
  EXPECT_EQ(sums[0], sums[2]);
}

TEST(Gloo, AddsUpWhatItSays) {
  runRanks(2, [](Communicator &ranks) {
    for (DType dtype : kDTypes) {
      std::byte from[16] = {}, to[16] = {};
      Status status = ranks.allReduce(from, to, 2, dtype);
      if (isSummedByRanks(dtype))
        EXPECT_THAT(status, succeeds());
      else
        EXPECT_THAT(status, failsWith(Code::Unsupported, "ranks add up no "));
    }
    EXPECT_THAT(ranks.close(), succeeds()); // what is refused waits for nobody
  });
}

/// Of any type.
static void checkMoves(Communicator &ranks, size_t count, DType dtype) {
  size_t bytes = count * traitsOf(dtype).bytes;
  auto make = [&](int rank) {
    std::vector<uint8_t> values(bytes);
    for (size_t i = 0; i < bytes; ++i)
      values[i] = static_cast<uint8_t>(valueOf(rank, i));
    return values;
  };
  std::vector<uint8_t> own = make(ranks.rank()), all(bytes * ranks.size());
  EXPECT_THAT(ranks.allGather(own.data(), all.data(), count, dtype),
              succeeds());
  for (int rank = 0; rank < ranks.size(); ++rank)
    EXPECT_TRUE(std::ranges::equal(std::span(all).subspan(bytes * rank, bytes),
                                   make(rank)));
  std::vector<uint8_t> whole(all.size());
  uint8_t *part = whole.data() + bytes * ranks.rank();
  std::ranges::copy(own, part);
  EXPECT_THAT(ranks.allGather(part, whole.data(), count, dtype), succeeds());
  EXPECT_EQ(whole, all) << "in place";
  for (int root = 0; root < ranks.size(); ++root) {
    std::vector<uint8_t> given(bytes), inPlace = make(ranks.rank());
    EXPECT_THAT(ranks.broadcast(own.data(), given.data(), count, dtype, root),
                succeeds());
    EXPECT_EQ(given, make(root));
    EXPECT_THAT(
        ranks.broadcast(inPlace.data(), inPlace.data(), count, dtype, root),
        succeeds());
    EXPECT_EQ(inPlace, make(root));
  }
}

TEST(Gloo, MovesAllTypes) {
  for (int size : {2, 3})
    runRanks(size, [](Communicator &ranks) {
      for (DType dtype : kDTypes)
        checkMoves(ranks, 17, dtype);
      for (size_t count : kCounts)
        checkMoves(ranks, count, DType::u8);
      EXPECT_THAT(ranks.barrier(), succeeds());
      EXPECT_THAT(ranks.broadcast(nullptr, nullptr, 0, DType::u8, ranks.size()),
                  failsWith(Code::Usage, "a broadcast of rank"));
    });
}

/// Returns only once the last rank came.
TEST(Gloo, WaitsAtBarriers) {
  std::atomic<bool> isLate = false;
  runRanks(3, [&](Communicator &ranks) {
    if (ranks.rank() == 2) {
      std::this_thread::sleep_for(50ms);
      isLate = true;
    }
    EXPECT_THAT(ranks.barrier(), succeeds());
    EXPECT_TRUE(isLate);
  });
}

//===----------------------------------------------------------------------===//
// What goes wrong
//===----------------------------------------------------------------------===//

/// A rank that is left by its communicator, and never again is whole.
TEST(Gloo, NoticesARankThatLeaves) {
  runRanks(3, [](Communicator &ranks) {
    if (ranks.rank() == 1)
      return;
    auto before = std::chrono::steady_clock::now();
    double value = 1;
    EXPECT_THAT(ranks.allReduce(&value, &value, 1, DType::f64),
                failsWith(Code::Peer, "was lost: it left"));
    EXPECT_LT(std::chrono::steady_clock::now() - before, 1s);
    EXPECT_THAT(ranks.barrier(), failsWith(Code::Peer, "in all-reduce 1"));
  });
}

namespace {

/// Rank 0 of several; the others are processes, of which each does `work` of
/// its own.
struct Processes {
  using Work = Status (*)(Communicator &ranks);

  std::vector<pid_t> children;
  std::unique_ptr<Communicator> ranks;

  Processes(int size, Work work, const Patience &patience = {}) {
    usePlugins();
    uint16_t port = findFreePort();
    auto open = [&](int rank) {
      return unwrap(openCommunicator(
          {.rank = rank, .size = size, .host = "127.0.0.1", .port = port},
          patience));
    };
    for (int rank = 1; rank < size; ++rank) {
      children.push_back(fork());
      if (children.back() == 0)
        _exit(static_cast<int>(work(*open(rank)).code()));
    }
    ranks = open(0);
  }
  ~Processes() {
    for (pid_t child : children)
      if (child > 0) {
        kill(child, SIGKILL);
        waitpid(child, nullptr, 0);
      }
  }
  /// The exit code of the rank, which ends by itself.
  int wait(int rank) {
    int how = 0;
    waitpid(std::exchange(children[rank - 1], 0), &how, 0);
    return WIFEXITED(how) ? WEXITSTATUS(how) : -1;
  }
};

/// A large sum so many times, or -1, until it fails.
Status addUp(Communicator &ranks, int times) {
  std::vector<float> values(1 << 20);
  Status status;
  for (int i = 0; status.ok() && i != times; ++i)
    status = ranks.allReduce(values.data(), values.data(), values.size(),
                             DType::f32, "values");
  return status;
}
Status addUpForEver(Communicator &ranks) { return addUp(ranks, -1); }

/// Zeros of memory that nobody has touched.
class Pages {
public:
  explicit Pages(size_t bytes)
      : bytes(bytes), data(static_cast<std::byte *>(
                          mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {}
  ~Pages() { munmap(data, bytes); }

  /// Whether something was written to the page at `offset`.
  bool isTouched(size_t offset) const {
    unsigned char isThere = 0;
    mincore(data + offset, 1, &isThere);
    return isThere & 1;
  }

  const size_t bytes;
  std::byte *const data;
};

constexpr size_t kMessage = size_t(512) << 20;

Status sendAll(Communicator &ranks) {
  Pages pages(kMessage);
  return ranks.broadcast(pages.data, pages.data, pages.bytes, DType::u8, 1);
}

} // namespace

/// In the middle of a large sum.
TEST(Gloo, NoticesAProcessThatDies) {
  Processes processes(3, addUpForEver);
  ASSERT_THAT(addUp(*processes.ranks, 3), succeeds());
  kill(processes.children[1], SIGKILL);
  auto killed = std::chrono::steady_clock::now();
  Status status = addUpForEver(*processes.ranks);
  EXPECT_LT(std::chrono::steady_clock::now() - killed, 1s);
  EXPECT_THAT(status, failsWith(Code::Peer, "rank 2 (host "));
  EXPECT_THAT(status, failsWith(Code::Peer, "was lost: its process ended; "));
  EXPECT_EQ(processes.wait(1), static_cast<int>(Code::Peer));
}

/// Part of a message has come when its sender dies, and nothing follows it.
TEST(Gloo, NoticesAProcessThatDiesWithinAMessage) {
  Processes processes(2, sendAll);
  Pages pages(kMessage);
  std::chrono::steady_clock::time_point killed;
  std::thread killer([&] {
    while (!pages.isTouched(0))
      std::this_thread::sleep_for(1ms);
    killed = std::chrono::steady_clock::now();
    kill(processes.children[0], SIGKILL);
  });
  Status status = processes.ranks->broadcast(pages.data, pages.data,
                                             pages.bytes, DType::u8, 1);
  auto ended = std::chrono::steady_clock::now();
  killer.join();
  EXPECT_THAT(status, failsWith(Code::Peer, "was lost: its process ended; "));
  EXPECT_LT(ended - killed, 1s);
  EXPECT_FALSE(pages.isTouched(kMessage - 1)) << "it was to come in part";
}

/// Calls that are blocked end: those of ranks that wait for it, and of those
/// that wait for these.
TEST(Gloo, NoticesAProcessThatIsStopped) {
  Processes processes(3, addUpForEver, {.silence = 500ms, .collective = 5s});
  ASSERT_THAT(addUp(*processes.ranks, 3), succeeds());
  std::this_thread::sleep_for(200ms); // it says where it is
  kill(processes.children[1], SIGSTOP);
  auto stopped = std::chrono::steady_clock::now();
  Status status = addUpForEver(*processes.ranks);
  EXPECT_LT(std::chrono::steady_clock::now() - stopped, 2s);
  EXPECT_THAT(status, failsWith(Code::Peer, "rank 2 (host "));
  EXPECT_THAT(status, failsWith(Code::Peer, "no word of it for 0.5 s; "));
  EXPECT_THAT(status, failsWith(Code::Peer, " of values; this is rank 0 "));
  EXPECT_EQ(processes.wait(1), static_cast<int>(Code::Peer));
  // Once it goes on it finds that it was given up.
  kill(processes.children[1], SIGCONT);
  EXPECT_EQ(processes.wait(2), static_cast<int>(Code::Peer));
}

/// A rank that gives word and does not come is given up, and named.
TEST(Gloo, WaitsNoLongerThanItIsTold) {
  runRanks(2,
           [](Communicator &ranks) {
             double value = 1;
             if (ranks.rank() == 0) {
               EXPECT_THAT(ranks.allReduce(&value, &value, 1, DType::f64),
                           failsWith(Code::Peer,
                                     "was lost: others waited for it for 0.4 "
                                     "s before the first update in "
                                     "all-reduce 1"));
               return;
             }
             std::this_thread::sleep_for(1500ms);
             EXPECT_THAT(ranks.allReduce(&value, &value, 1, DType::f64),
                         failsWith(Code::Peer, "was given up by the others"));
           },
           {.silence = 1s, .collective = 400ms});
}

static Status open(const Launch &launch, std::chrono::milliseconds patience) {
  auto opened = openCommunicator(launch, {.rendezvous = patience});
  return opened.ok() ? Status() : opened.takeStatus();
}

TEST(Gloo, NamesRanksThatDoNotCome) {
  usePlugins();
  Launch launch = {.size = 2, .host = "127.0.0.1", .port = findFreePort()};
  EXPECT_THAT(open(launch, 100ms),
              failsWith(Code::Peer, "rank 1 of 2 did not come"));
  launch.rank = 1;
  EXPECT_THAT(open(launch, 100ms), failsWith(Code::Peer, "there is no rank 0"));
}

TEST(Gloo, NamesRanksThatContradict) {
  usePlugins();
  uint16_t port = findFreePort();
  auto openBoth = [&](Launch first, Launch second) {
    first.host = second.host = "127.0.0.1";
    first.port = second.port = port;
    std::thread other([&] { (void)open(first, 2s); });
    Status status = open(second, 200ms);
    other.join();
    return status;
  };
  EXPECT_THAT(openBoth({.rank = 0, .size = 2}, {.rank = 1, .size = 3}),
              failsWith(Code::Usage, "rank 0 is one of 2, rank 1 is one of 3"));
  std::thread first([&] {
    (void)open({.size = 3, .host = "127.0.0.1", .port = port}, 300ms);
  });
  std::thread one([&] {
    (void)open({.rank = 1, .size = 3, .host = "127.0.0.1", .port = port},
               300ms);
  });
  std::this_thread::sleep_for(100ms);
  EXPECT_THAT(
      open({.rank = 1, .size = 3, .host = "127.0.0.1", .port = port}, 300ms),
      failsWith(Code::Usage, "another process is rank 1, too"));
  first.join();
  one.join();
}
