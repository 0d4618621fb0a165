// A group of one rank on the device that TCC_CHECKED_DEVICE names, by the
// library and the driver of the machine, or on the emulated one: what one GPU
// can tell of calls, graphs and ends.

#include "runtime/base/Plugin.h"
#include "runtime/devices/cuda/Group.h"
#include "runtime/devices/cuda/OpenCuda.h"
#include "gtest/gtest.h"

#include <cstdlib>
#include <future>
#include <numeric>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::runtime::cuda;

namespace {

constexpr size_t kCount = 1 << 16;
constexpr size_t kBytes = kCount * sizeof(float);

/// A stream, places `from` and `to`, and pinned memory for either.
class OneRank : public testing::Test {
protected:
  void SetUp() override {
    const char *given = std::getenv("TCC_CHECKED_DEVICE");
    auto choice = parseChoice(given ? given : "emulated");
    ASSERT_TRUE(choice) << given;
    setenv("TCC_PLUGINS", TCC_PLUGIN_FOLDER, /*overwrite=*/0);
    // Ids name an interface of the network.
    setenv("NCCL_SOCKET_IFNAME", "lo", /*overwrite=*/0);
    auto found = choice->isEmulated ? findEmulatedDriver() : findDriver();
    if (!found.ok())
      GTEST_SKIP() << "not available: " << found.takeStatus().message();
    driver = *found;
    device = choice->ordinal;
    openLibrary(choice->isEmulated);
    if (!library)
      return;
    ContextHandle context;
    ASSERT_EQ(driver->devicePrimaryCtxRetain(&context, device), kSuccess);
    ASSERT_EQ(driver->ctxPushCurrent(context), kSuccess);
    ASSERT_EQ(driver->streamCreate(&stream, kNonBlocking), kSuccess);
    ASSERT_EQ(driver->memAlloc(&from, kBytes), kSuccess);
    ASSERT_EQ(driver->memAlloc(&to, kBytes), kSuccess);
    void *memory = nullptr;
    ASSERT_EQ(driver->memHostAlloc(&memory, kBytes, 0), kSuccess);
    host = static_cast<float *>(memory);
    auto joined = library->join(*library->createId(), /*rank=*/0, /*size=*/1,
                                [] { return false; });
    ASSERT_TRUE(joined.ok()) << joined.takeStatus().message();
    group = std::move(*joined);
  }

  void openLibrary(bool isEmulated) {
    auto open = findInPlugin("libtcc_nccl.so", kOpenGroupLibrary);
    ASSERT_TRUE(open.ok()) << open.takeStatus().message();
    GroupChoice choice = {.places = std::getenv("TCC_CUDA_LIB")};
    if (isEmulated) {
      auto table = findInPlugin("libtcc_emulated.so", "tcc_emulated_nccl");
      ASSERT_TRUE(table.ok()) << table.takeStatus().message();
      choice.simulated = reinterpret_cast<const Nccl *(*)()>(*table)();
    }
    Status status;
    library.reset(reinterpret_cast<OpenGroupLibrary>(*open)(choice, status));
    if (!library)
      GTEST_SKIP() << "not available: " << status.message();
  }

  void TearDown() override {
    group.reset();
    if (!stream)
      return;
    driver->memFreeHost(host);
    driver->memFree(to);
    driver->memFree(from);
    driver->streamDestroy(stream);
    ContextHandle popped;
    driver->ctxPopCurrent(&popped);
    driver->devicePrimaryCtxRelease(device);
  }

  /// `from` has first, first + 1, ..., and `to` zeros.
  void fill(float first) {
    std::iota(host, host + kCount, first);
    EXPECT_EQ(driver->memcpyHtoDAsync(from, host, kBytes, stream), kSuccess);
    EXPECT_EQ(driver->memsetD8Async(to, 0, kBytes, stream), kSuccess);
    EXPECT_EQ(driver->streamSynchronize(stream), kSuccess);
  }
  /// Whether `to` has first, first + 1, ...
  bool has(float first) {
    EXPECT_EQ(driver->memcpyDtoHAsync(host, to, kBytes, stream), kSuccess);
    EXPECT_EQ(driver->streamSynchronize(stream), kSuccess);
    for (size_t i = 0; i < kCount; ++i)
      if (host[i] != first + static_cast<float>(i))
        return false;
    return true;
  }
  Status enqueue(CollectiveKind kind) {
    return group->enqueue({.command = 0,
                           .lane = 0,
                           .kind = kind,
                           .from = reinterpret_cast<const void *>(from),
                           .to = reinterpret_cast<void *>(to),
                           .count = kCount,
                           .dtype = DType::f32},
                          stream);
  }
  GraphExecHandle capture() {
    GraphHandle graph = nullptr;
    GraphExecHandle exec = nullptr;
    EXPECT_EQ(driver->streamBeginCapture(stream, kCaptureThreadLocal),
              kSuccess);
    Status status = enqueue(CollectiveKind::AllReduce);
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(driver->streamEndCapture(stream, &graph), kSuccess);
    EXPECT_EQ(driver->graphInstantiateWithFlags(&exec, graph, 0), kSuccess);
    driver->graphDestroy(graph);
    return exec;
  }

  const Driver *driver = nullptr;
  int device = 0;
  StreamHandle stream = nullptr;
  Address from = 0, to = 0;
  float *host = nullptr;
  std::unique_ptr<GroupLibrary> library;
  std::unique_ptr<Group> group;
};

} // namespace

TEST_F(OneRank, DoesAllKinds) {
  for (CollectiveKind kind :
       {CollectiveKind::AllReduce, CollectiveKind::ReduceScatter,
        CollectiveKind::AllGather, CollectiveKind::Broadcast}) {
    fill(static_cast<float>(kind));
    Status status = enqueue(kind);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_TRUE(has(static_cast<float>(kind))) << nameOf(kind);
    EXPECT_TRUE(group->check().ok());
  }
}

TEST_F(OneRank, IsPartOfGraphs) {
  GraphExecHandle exec = capture();
  for (float first : {3.0f, 5.0f}) {
    fill(first);
    EXPECT_EQ(driver->graphLaunch(exec, stream), kSuccess);
    EXPECT_TRUE(has(first));
  }
  EXPECT_TRUE(group->check().ok());
  driver->graphExecDestroy(exec);
}

/// Whatever the library waits for, it is no more than the end of the graphs.
TEST_F(OneRank, EndsWithoutItsGraphs) {
  GraphExecHandle exec = capture();
  auto aborted = std::async(std::launch::async, [&] { group->abort(); });
  aborted.wait_for(std::chrono::milliseconds(100));
  driver->graphExecDestroy(exec);
  ASSERT_EQ(aborted.wait_for(std::chrono::seconds(20)),
            std::future_status::ready);
  EXPECT_EQ(enqueue(CollectiveKind::AllReduce).code(), Code::Peer);
}
