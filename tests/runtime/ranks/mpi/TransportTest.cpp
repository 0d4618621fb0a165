#include "tests/runtime/Fixture.h"
#include "tests/runtime/ranks/Ranks.h"

#include <cstdio>
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
