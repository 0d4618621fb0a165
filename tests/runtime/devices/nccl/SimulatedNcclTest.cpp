// The simulated NCCL between two processes.

#include "runtime/devices/emulated/SimulatedNccl.h"
#include "gtest/gtest.h"

#include <dlfcn.h>
#include <functional>
#include <iostream>
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
  float *at(size_t index) { return reinterpret_cast<float *>(place) + index; }
  /// A graph that adds up 4 floats.
  GraphExecHandle capture() {
    GraphHandle graph;
    GraphExecHandle exec = nullptr;
    driver.streamBeginCapture(stream, kCaptureThreadLocal);
    nccl.allReduce(at(0), at(0), 4, kNcclF32, kNcclSum, comm, stream);
    driver.streamEndCapture(stream, &graph);
    driver.graphInstantiateWithFlags(&exec, graph, 0);
    driver.graphDestroy(graph);
    return exec;
  }
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

namespace {

/// What a rank does wrong, and what is said of it.
struct Difference {
  const char *name;
  std::function<void(Rank &)> work;
  const char *said;
};

} // namespace

static NcclError add(Rank &own, int count = 4, int type = kNcclF32) {
  return own.nccl.allReduce(own.at(0), own.at(0), count, type, kNcclSum,
                            own.comm, own.stream);
}
static NcclError give(Rank &own, int root) {
  return own.nccl.broadcast(own.at(0), own.at(0), 4, kNcclF32, root, own.comm,
                            own.stream);
}

/// NCCL waits for ever: here the communicator has an error, and its stream goes
/// on once that is aborted.
static bool isRefused(Rank &own, const Difference &difference) {
  NcclError seen = kNcclSuccess;
  difference.work(own);
  std::thread watch([&] {
    while ((seen = own.error()) == kNcclSuccess)
      std::this_thread::yield();
    own.nccl.commAbort(own.comm);
  });
  own.driver.streamSynchronize(own.stream);
  watch.join();
  std::string_view why = own.nccl.getLastError(own.comm);
  bool isFound = seen == kNcclInvalidUsage &&
                 why.find("ranks differ") != std::string_view::npos &&
                 why.find(difference.said) != std::string_view::npos;
  if (!isFound)
    std::cerr << difference.name << ": " << why << '\n';
  return isFound;
}

TEST(SimulatedNccl, FindsCallsThatDiffer) {
  const Difference differences[] = {
      {"count", [](Rank &own) { add(own, 4 + own.rank); },
       "call 1 all-reduce of 5 of type 7"},
      {"type", [](Rank &own) { add(own, 4, own.rank ? kNcclI32 : kNcclF32); },
       "call 1 all-reduce of 4 of type 2"},
      {"root", [](Rank &own) { give(own, own.rank); },
       "call 1 broadcast of 4 of type 7 root 1"},
      {"order",
       [](Rank &own) {
         for (int i : {0, 1})
           (void)(i == own.rank ? add(own) : give(own, 0));
       },
       "call 1 broadcast"},
      {"a rank without the second call",
       [](Rank &own) {
         add(own);
         if (own.rank == 0)
           return (void)add(own);
         own.driver.streamSynchronize(own.stream);
         own.nccl.commFinalize(own.comm);
       },
       "call 2 end"},
  };
  for (const Difference &difference : differences)
    runBoth([&](Rank &own) { return isRefused(own, difference); });
}

/// What the driver says of the first failure, if it is of `text`.
static bool says(const Rank &own, std::string_view text) {
  constexpr Error kFailed = 719;
  const char *found = "";
  own.driver.getErrorString(kFailed, &found);
  bool ok = std::string_view(found).find(text) != std::string_view::npos;
  if (!ok)
    std::cerr << "expected '" << text << "', found '" << found << "'\n";
  return ok;
}

TEST(SimulatedNccl, RefusesBuffersThatDoNotFit) {
  runBoth([](Rank &own) {
    return add(own, 1 << 20) != kNcclSuccess &&
           says(own, "lie outside a block");
  });
  runBoth([](Rank &own) {
    NcclError error = own.nccl.allReduce(own.at(0), own.at(2), 4, kNcclF32,
                                         kNcclSum, own.comm, own.stream);
    return error != kNcclSuccess && says(own, "it is not in place");
  });
  runBoth([](Rank &own) {
    NcclError error = own.nccl.allGather(own.at(2 - 2 * own.rank), own.at(0), 2,
                                         kNcclF32, own.comm, own.stream);
    return error != kNcclSuccess && says(own, "it is not in place");
  });
}

TEST(SimulatedNccl, FindsBuffersThatWereFreed) {
  runBoth([](Rank &own) {
    bool ok = add(own) == kNcclSuccess;
    own.driver.memFree(own.place);
    return ok && own.driver.streamSynchronize(own.stream) != kSuccess &&
           says(own, "all-reduce: ") && says(own, "freed");
  });
  runBoth([](Rank &own) {
    GraphExecHandle graph = own.capture();
    bool ok = own.driver.graphLaunch(graph, own.stream) == kSuccess &&
              own.driver.streamSynchronize(own.stream) == kSuccess;
    own.driver.memFree(own.place);
    own.driver.graphLaunch(graph, own.stream);
    return ok && own.driver.streamSynchronize(own.stream) != kSuccess &&
           says(own, "freed");
  });
}

TEST(SimulatedNccl, RefusesCommunicatorsThatEnded) {
  runBoth([](Rank &own) {
    return own.nccl.commAbort(own.comm) == kNcclSuccess &&
           add(own) == kNcclInvalidUsage &&
           own.nccl.commAbort(own.comm) != kNcclSuccess;
  });
  runBoth([](Rank &own) {
    return own.nccl.commFinalize(own.comm) == kNcclSuccess &&
           own.nccl.commDestroy(own.comm) == kNcclSuccess &&
           add(own) == kNcclInvalidUsage &&
           own.nccl.commDestroy(own.comm) != kNcclSuccess;
  });
}

TEST(SimulatedNccl, RefusesStreamsOfAnotherDevice) {
  runBoth([](Rank &own) {
    ContextHandle other;
    own.driver.devicePrimaryCtxRetain(&other, 7);
    own.driver.ctxPushCurrent(other);
    return add(own) == kNcclInvalidArgument;
  });
}

TEST(SimulatedNccl, EndsAfterItsCalls) {
  auto isRefused = [](Rank &own) {
    std::string_view why = "it ends while a stream or a graph has calls";
    return own.nccl.commFinalize(own.comm) == kNcclInvalidUsage &&
           own.nccl.getLastError(own.comm) == why;
  };
  runBoth(
      [&](Rank &own) { return add(own) == kNcclSuccess && isRefused(own); });
  runBoth([&](Rank &own) { return own.capture() && isRefused(own); });
  runBoth([&](Rank &own) {
    own.driver.graphExecDestroy(own.capture());
    return own.nccl.commFinalize(own.comm) == kNcclSuccess;
  });
}

/// Rank 0's streams are late, rank 1's early: one of them shows what no event
/// orders.
TEST(SimulatedNccl, ShowsStreamsThatNothingOrders) {
  for (bool isOrdered : {true, false})
    runBoth([&](Rank &own) {
      StreamHandle lane;
      EventHandle event;
      own.driver.streamCreate(&lane, kNonBlocking);
      own.driver.eventCreate(&event, kNoTiming);
      own.driver.memsetD8Async(own.place, 0, 16, own.stream);
      if (isOrdered) {
        own.driver.eventRecord(event, own.stream);
        own.driver.streamWaitEvent(lane, event, 0);
      }
      own.nccl.allReduce(own.at(0), own.at(0), 4, kNcclF32, kNcclSum, own.comm,
                         lane);
      own.driver.streamSynchronize(lane);
      return (own.values()[3] == 0) == (isOrdered || own.rank == 0);
    });
}

TEST(SimulatedNccl, FailsWhereItIsTold) {
  runBoth([](Rank &own) {
    setenv("TCC_EMULATED_NCCL_FAULT", "error:2", /*overwrite=*/1);
    bool ok = add(own) == kNcclSuccess && add(own) == kNcclSuccess;
    std::thread watch([&] {
      while (own.error() == kNcclSuccess)
        std::this_thread::yield();
      ok &= own.error() == kNcclSystemError;
      own.nccl.commAbort(own.comm);
    });
    own.driver.streamSynchronize(own.stream);
    watch.join();
    return ok && own.values()[3] == 6;
  });
}
