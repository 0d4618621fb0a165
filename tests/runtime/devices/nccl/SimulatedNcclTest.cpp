// The simulated NCCL between two processes.

#include "runtime/devices/emulated/SimulatedNccl.h"
#include "gtest/gtest.h"

#include <dlfcn.h>
#include <functional>
#include <numeric>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace tcc::runtime::cuda;

namespace {

template <typename Table> const Table &find(const char *name) {
  void *library = dlopen(TCC_EMULATED_PLUGIN, RTLD_NOW);
  return *reinterpret_cast<const Table *(*)()>(dlsym(library, name))();
}

/// A rank: a communicator, a stream and 16 floats, 0 to 15.
struct Rank {
  const Driver &driver = find<Driver>("tcc_emulated_driver");
  const Nccl &nccl = find<Nccl>("tcc_emulated_nccl");
  int rank;
  NcclHandle comm = nullptr;
  StreamHandle stream = nullptr;
  Address place = 0;

  Rank(int rank, const NcclId &id) : rank(rank) {
    ContextHandle context;
    driver.devicePrimaryCtxRetain(&context, rank);
    driver.ctxPushCurrent(context);
    driver.streamCreate(&stream, kNonBlocking);
    driver.memAlloc(&place, 16 * sizeof(float));
    std::vector<float> values(16);
    std::iota(values.begin(), values.end(), 0.0f);
    driver.memcpyHtoDAsync(place, values.data(), 16 * sizeof(float), stream);
    driver.streamSynchronize(stream);
    NcclConfig config;
    nccl.commInitRankConfig(&comm, 2, id, rank, &config);
    while (error() == kNcclInProgress)
      std::this_thread::yield();
  }

  NcclError error() const {
    NcclError found = kNcclSuccess;
    nccl.commGetAsyncError(comm, &found);
    return found;
  }
  const float *at(size_t index) const {
    return reinterpret_cast<const float *>(place) + index;
  }
  float *at(size_t index) { return reinterpret_cast<float *>(place) + index; }
  std::vector<float> values() {
    std::vector<float> found(16);
    driver.memcpyDtoHAsync(found.data(), place, 16 * sizeof(float), stream);
    driver.streamSynchronize(stream);
    return found;
  }
};

} // namespace

/// Both ranks, each in a process of its own, which ends with 0 if `work` says
/// true.
static void runBoth(const std::function<bool(Rank &)> &work) {
  setenv("TCC_PLUGINS", TCC_PLUGIN_FOLDER, /*overwrite=*/1);
  NcclId id;
  ASSERT_EQ(find<Nccl>("tcc_emulated_nccl").getUniqueId(&id), kNcclSuccess);
  pid_t children[2];
  for (int rank = 0; rank < 2; ++rank) {
    children[rank] = fork();
    if (children[rank] == 0) {
      alarm(20);
      Rank own(rank, id);
      _exit(own.error() == kNcclSuccess ? !work(own) : 2);
    }
  }
  for (pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
}

TEST(SimulatedNccl, DoesAllKindsInPlace) {
  runBoth([](Rank &own) {
    const Nccl &nccl = own.nccl;
    bool ok = nccl.allReduce(own.at(0), own.at(0), 4, kNcclF32, kNcclSum,
                             own.comm, own.stream) == kNcclSuccess;
    ok &= nccl.reduceScatter(own.at(4), own.at(4 + 2 * own.rank), 2, kNcclF32,
                             kNcclSum, own.comm, own.stream) == kNcclSuccess;
    ok &= nccl.allGather(own.at(8 + 2 * own.rank), own.at(8), 2, kNcclF32,
                         own.comm, own.stream) == kNcclSuccess;
    ok &= nccl.broadcast(own.at(12), own.at(12), 4, kNcclF32, 1, own.comm,
                         own.stream) == kNcclSuccess;
    std::vector<float> found = own.values();
    for (int i = 0; i < 4; ++i)
      ok &= found[i] == 2.0f * i && found[8 + i] == 8 + i &&
            found[12 + i] == 12 + i;
    for (int i = 4 + 2 * own.rank; i < 6 + 2 * own.rank; ++i)
      ok &= found[i] == 2.0f * i;
    return ok && own.nccl.commFinalize(own.comm) == kNcclSuccess;
  });
}

/// NCCL waits for ever: here the communicator has an error, and its stream goes
/// on once that is aborted.
TEST(SimulatedNccl, FindsCallsThatDiffer) {
  runBoth([](Rank &own) {
    own.nccl.allReduce(own.at(0), own.at(0), 4 + own.rank, kNcclF32, kNcclSum,
                       own.comm, own.stream);
    NcclError seen = kNcclSuccess;
    std::thread watch([&] {
      while ((seen = own.error()) == kNcclSuccess)
        std::this_thread::yield();
      own.nccl.commAbort(own.comm);
    });
    own.driver.streamSynchronize(own.stream);
    watch.join();
    std::string_view why = own.nccl.getLastError(own.comm);
    return seen == kNcclInvalidUsage &&
           why.find("ranks differ") != std::string_view::npos;
  });
}

TEST(SimulatedNccl, RefusesBuffersThatAreTooShort) {
  runBoth([](Rank &own) {
    bool ok =
        own.nccl.allReduce(own.at(0), own.at(0), 1 << 20, kNcclF32, kNcclSum,
                           own.comm, own.stream) != kNcclSuccess;
    return ok;
  });
}
