#include "tests/runtime/Fixture.h"
#include "tests/runtime/ranks/Ranks.h"

#include <cstdio>
#include <cstdlib>
#include <sys/wait.h>
#include <unistd.h>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::tests;

/// By one rank that no launcher began: whether sums are of the types that the
/// runtime says.
static int checkSums(TransportKind kind) {
  auto opened = openCommunicator({.transport = kind});
  if (!opened.ok()) {
    Status status = opened.takeStatus();
    std::cerr << status.message() << '\n';
    return static_cast<int>(status.code());
  }
  for (int i = 0; i <= int(DType::MAX); ++i) {
    std::byte from[16] = {}, to[16] = {};
    auto dtype = static_cast<DType>(i);
    Code expected = isSummedByRanks(dtype) ? Code::Ok : Code::Unsupported;
    if ((*opened)->allReduce(from, to, 2, dtype).code() != expected ||
        (*opened)->reduceScatter(from, to, 2, dtype).code() != expected) {
      std::cerr << traitsOf(dtype).name << '\n';
      return static_cast<int>(Code::Mismatch);
    }
  }
  return static_cast<int>((*opened)->close().code());
}

/// In a process of its own: one cannot have two of them.
static int checkAlone(TransportKind kind) {
  usePlugins();
  std::fflush(nullptr); // what is unsaid would be said twice
  pid_t child = fork();
  if (child == 0)
    std::exit(checkSums(kind)); // ends MPI
  int how = 0;
  waitpid(child, &how, 0);
  return WIFEXITED(how) ? WEXITSTATUS(how) : -1;
}

TEST(Mpi, AddsUpWhatItSays) {
  int ran = 0;
  for (TransportKind kind : {TransportKind::OpenMpi, TransportKind::Mpich}) {
    int code = checkAlone(kind);
    if (code == static_cast<int>(Code::Unsupported))
      continue; // not built
    EXPECT_EQ(code, 0);
    ++ran;
  }
  EXPECT_GT(ran, 0);
}

/// As a launcher began it: calls of more than a piece, with values of which
/// sums are exact.
static void checkPieces(Communicator &ranks) {
  constexpr size_t kCount = 600001; // 4.8 MB
  const size_t size = ranks.size(), rank = ranks.rank();
  auto make = [&](size_t of, size_t count) {
    std::vector<double> values(count);
    for (size_t i = 0; i < count; ++i)
      values[i] = double((of + 1) * (i % 1000));
    return values;
  };
  const size_t weight = size * (size + 1) / 2; // make() summed over ranks
  std::vector<double> from = make(rank, kCount), to(kCount);
  ASSERT_THAT(ranks.allReduce(from.data(), to.data(), kCount, DType::f64),
              succeeds());
  EXPECT_EQ(to, make(weight - 1, kCount));
  std::vector<double> all(kCount * size);
  ASSERT_THAT(ranks.allGather(from.data(), all.data(), kCount, DType::f64),
              succeeds());
  for (size_t other = 0; other < size; ++other)
    EXPECT_TRUE(std::ranges::equal(
        std::span(all).subspan(other * kCount, kCount), make(other, kCount)));
  from = make(rank, kCount * size);
  ASSERT_THAT(ranks.reduceScatter(from.data(), to.data(), kCount, DType::f64),
              succeeds());
  std::vector<double> total = make(weight - 1, kCount * size);
  EXPECT_TRUE(
      std::ranges::equal(to, std::span(total).subspan(rank * kCount, kCount)));
  to = make(rank, kCount);
  ASSERT_THAT(ranks.broadcast(to.data(), to.data(), kCount, DType::f64, 1),
              succeeds());
  EXPECT_EQ(to, make(1, kCount));
}

/// What the next test begins under a launcher.
TEST(MpiRank, DISABLED_MovesPieces) {
  Launch launch = unwrap(readLaunch());
  ASSERT_GT(launch.size, 1) << "no launcher began it";
  usePlugins();
  auto ranks = unwrap(openCommunicator(launch));
  checkPieces(*ranks);
  EXPECT_THAT(ranks->close(), succeeds());
}

TEST(Mpi, MovesPiecesBetweenThreeRanks) {
  int ran = 0;
  for (const char *launcher :
       {"mpirun.openmpi --allow-run-as-root --oversubscribe -np 3",
        "mpiexec.mpich -n 3"}) {
    std::string name(launcher, std::string_view(launcher).find(' '));
    if (std::system(("command -v " + name + " >/dev/null").c_str()) != 0)
      continue;
    std::string self = std::filesystem::read_symlink("/proc/self/exe");
    EXPECT_EQ(std::system(concat(launcher, " ", self,
                                 " --gtest_also_run_disabled_tests"
                                 " --gtest_filter=MpiRank.*"
                                 " >/dev/null")
                              .c_str()),
              0)
        << name;
    ++ran;
  }
  EXPECT_GT(ran, 0);
}
