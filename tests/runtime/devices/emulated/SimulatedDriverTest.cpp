// What a driver leaves undefined, or does now and then, is an error here or
// always goes wrong.

#include "runtime/devices/emulated/SimulatedDriver.h"
#include "runtime/devices/emulated/EmulatedKernel.h"
#include "runtime/devices/emulated/EmulatedModule.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <dlfcn.h>
#include <fstream>
#include <sstream>
#include <string>
#include <unistd.h>

using namespace tcc::emulated;
using namespace tcc::runtime::cuda;
using testing::HasSubstr;

namespace {

const Driver &openDriver() {
  void *library = dlopen(TCC_PLUGIN, RTLD_NOW);
  auto find = reinterpret_cast<const Driver *(*)()>(
      dlsym(library, "tcc_emulated_driver"));
  return *find();
}

/// out = in + 1, of one i64.
void increment(const EmulatedThread *, void *const *parameters) {
  auto *in = *static_cast<int64_t *const *>(parameters[0]);
  auto *out = *static_cast<int64_t *const *>(parameters[1]);
  *out = *in + 1;
}

/// A context with two streams, an event and pinned memory.
class SimulatedDriverTest : public testing::Test {
protected:
  void SetUp() override {
    ContextHandle context;
    driver.devicePrimaryCtxRetain(&context, 0);
    driver.ctxPushCurrent(context);
    for (StreamHandle *stream : {&first, &second})
      driver.streamCreate(stream, kNonBlocking);
    driver.eventCreate(&event, kNoTiming);
    void *memory = nullptr;
    driver.memHostAlloc(&memory, 64, 0);
    host = static_cast<int64_t *>(memory);
    driver.memAlloc(&place, 16);
  }
  void TearDown() override {
    if (module)
      driver.moduleUnload(module);
    driver.eventDestroy(event);
    driver.streamDestroy(first);
    driver.streamDestroy(second);
    driver.memFreeHost(host);
    ContextHandle popped;
    driver.ctxPopCurrent(&popped);
    driver.devicePrimaryCtxRelease(0);
  }

  std::string textOf(Error error) {
    const char *text = nullptr;
    driver.getErrorString(error, &text);
    return error == kSuccess ? "" : text;
  }
  /// place + 8 becomes the element of `place`, plus 1.
  Error launch(StreamHandle stream, Address from) {
    ModuleKernel kernel = {"increment",
                           reinterpret_cast<const void *>(&increment), 2, 2};
    EmulatedModule source = {&kernel, 1};
    if (!function) {
      driver.moduleLoadDataEx(&module, &source, 0, nullptr, nullptr);
      driver.moduleGetFunction(&function, module, "increment");
    }
    Address to = place + 8;
    void *parameters[] = {&from, &to};
    return driver.launchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream,
                               parameters, nullptr);
  }

  const Driver &driver = openDriver();
  StreamHandle first, second;
  EventHandle event;
  ModuleHandle module = nullptr;
  FunctionHandle function = nullptr;
  int64_t *host;
  Address place = 0;
};

} // namespace

TEST_F(SimulatedDriverTest, RefusesAddressesOfTheOtherSide) {
  Address hostAddress = reinterpret_cast<Address>(host);
  EXPECT_THAT(textOf(driver.memcpyHtoDAsync(hostAddress, host, 8, first)),
              HasSubstr("an address of the host"));
}

TEST_F(SimulatedDriverTest, RefusesDeviceAddressesAsHost) {
  EXPECT_THAT(textOf(driver.memcpyDtoHAsync(reinterpret_cast<void *>(place),
                                            place, 8, first)),
              HasSubstr("an address of the device"));
}

TEST_F(SimulatedDriverTest, RefusesCopiesOutOfRange) {
  EXPECT_THAT(textOf(driver.memcpyHtoDAsync(place + 12, host, 8, first)),
              HasSubstr("bytes 12 to 20 lie outside a block of 16"));
  // It stays so, as in a context whose kernel failed.
  EXPECT_NE(driver.streamSynchronize(first), kSuccess);
}

TEST_F(SimulatedDriverTest, ReleasesWithoutWorkAfterAFailure) {
  StreamHandle third = nullptr;
  EventHandle other = nullptr;
  ASSERT_EQ(driver.streamCreate(&third, kNonBlocking), kSuccess);
  ASSERT_EQ(driver.eventCreate(&other, kNoTiming), kSuccess);
  ASSERT_EQ(driver.memsetD8Async(place, 0, 8, third), kSuccess);
  ASSERT_EQ(driver.eventRecord(other, third), kSuccess);
  ASSERT_EQ(driver.streamWaitEvent(first, other, 0), kSuccess);
  EXPECT_NE(driver.memcpyHtoDAsync(place + 12, host, 8, first), kSuccess);
  // Neither the event nor the first stream waits for a stream that is gone.
  EXPECT_EQ(driver.streamDestroy(third), kSuccess);
  EXPECT_EQ(driver.eventDestroy(other), kSuccess);
}

TEST_F(SimulatedDriverTest, FindsMemoryThatWasFreed) {
  ASSERT_EQ(driver.memsetD8Async(place, 0, 16, first), kSuccess);
  ASSERT_EQ(driver.memFree(place), kSuccess);
  EXPECT_THAT(textOf(driver.streamSynchronize(first)), HasSubstr("was freed"));
}

TEST_F(SimulatedDriverTest, ChecksBuffersOfKernels) {
  ASSERT_EQ(launch(first, reinterpret_cast<Address>(host)), kSuccess);
  EXPECT_THAT(
      textOf(driver.streamSynchronize(first)),
      HasSubstr("kernel 'increment', buffer 0: an address of the host"));
}

TEST_F(SimulatedDriverTest, ResultsAreThereOnceSomebodyWaits) {
  host[0] = 5;
  host[1] = -1;
  ASSERT_EQ(driver.memcpyHtoDAsync(place, host, 8, first), kSuccess);
  host[0] = 6; // too early: the copy was not waited for
  ASSERT_EQ(launch(first, place), kSuccess);
  ASSERT_EQ(driver.memcpyDtoHAsync(host + 1, place + 8, 8, first), kSuccess);
  EXPECT_EQ(host[1], -1);
  ASSERT_EQ(driver.streamSynchronize(first), kSuccess);
  EXPECT_EQ(host[1], 7);
}

TEST_F(SimulatedDriverTest, EventsOrderStreams) {
  for (bool waits : {false, true}) {
    host[0] = waits ? 20 : 10;
    ASSERT_EQ(driver.memsetD8Async(place, 0, 16, second), kSuccess);
    ASSERT_EQ(driver.streamSynchronize(second), kSuccess);
    ASSERT_EQ(driver.memcpyHtoDAsync(place, host, 8, first), kSuccess);
    ASSERT_EQ(driver.eventRecord(event, first), kSuccess);
    if (waits)
      ASSERT_EQ(driver.streamWaitEvent(second, event, 0), kSuccess);
    ASSERT_EQ(launch(second, place), kSuccess);
    ASSERT_EQ(driver.memcpyDtoHAsync(host + 1, place + 8, 8, second), kSuccess);
    ASSERT_EQ(driver.streamSynchronize(second), kSuccess);
    EXPECT_EQ(host[1], waits ? 21 : 1);
  }
}

TEST_F(SimulatedDriverTest, GraphsAreReplayed) {
  ASSERT_EQ(driver.streamBeginCapture(first, kCaptureThreadLocal), kSuccess);
  ASSERT_EQ(launch(first, place), kSuccess);
  ASSERT_EQ(driver.memcpyDtoHAsync(host + 1, place + 8, 8, first), kSuccess);
  GraphHandle graph;
  GraphExecHandle exec;
  ASSERT_EQ(driver.streamEndCapture(first, &graph), kSuccess);
  ASSERT_EQ(driver.graphInstantiateWithFlags(&exec, graph, 0), kSuccess);
  ASSERT_EQ(driver.graphDestroy(graph), kSuccess);
  for (int64_t value : {3, 4}) {
    host[0] = value;
    ASSERT_EQ(driver.memcpyHtoDAsync(place, host, 8, first), kSuccess);
    ASSERT_EQ(driver.graphLaunch(exec, first), kSuccess);
    ASSERT_EQ(driver.streamSynchronize(first), kSuccess);
    EXPECT_EQ(host[1], value + 1);
  }
  ASSERT_EQ(driver.graphExecDestroy(exec), kSuccess);
}

TEST_F(SimulatedDriverTest, NothingIsWaitedForInACapture) {
  ASSERT_EQ(driver.streamBeginCapture(first, kCaptureThreadLocal), kSuccess);
  EXPECT_THAT(textOf(driver.streamSynchronize(first)),
              HasSubstr("captures a graph"));
}

TEST_F(SimulatedDriverTest, GraphsCopyPinnedMemoryOnly) {
  int64_t local = 0;
  ASSERT_EQ(driver.streamBeginCapture(first, kCaptureThreadLocal), kSuccess);
  EXPECT_THAT(textOf(driver.memcpyHtoDAsync(place, &local, 8, first)),
              HasSubstr("not pinned"));
}

/// Work of the second stream is part of the first one's graph.
TEST_F(SimulatedDriverTest, CapturesStreamsThatWaitForTheFirst) {
  EventHandle back;
  driver.eventCreate(&back, kNoTiming);
  ASSERT_EQ(driver.streamBeginCapture(first, kCaptureThreadLocal), kSuccess);
  ASSERT_EQ(driver.memsetD8Async(place, 1, 8, first), kSuccess);
  ASSERT_EQ(driver.eventRecord(event, first), kSuccess);
  ASSERT_EQ(driver.streamWaitEvent(second, event, 0), kSuccess);
  ASSERT_EQ(driver.memcpyDtoDAsync(place + 8, place, 8, second), kSuccess);
  ASSERT_EQ(driver.eventRecord(back, second), kSuccess);
  ASSERT_EQ(driver.streamWaitEvent(first, back, 0), kSuccess);
  ASSERT_EQ(driver.memcpyDtoHAsync(host, place + 8, 8, first), kSuccess);
  GraphHandle graph;
  ASSERT_EQ(driver.streamEndCapture(first, &graph), kSuccess);
  GraphExecHandle exec;
  ASSERT_EQ(driver.graphInstantiateWithFlags(&exec, graph, 0), kSuccess);
  driver.graphDestroy(graph);
  for (int replay = 0; replay < 3; ++replay) {
    *host = 0;
    ASSERT_EQ(driver.memsetD8Async(place, 7, 16, first), kSuccess);
    ASSERT_EQ(driver.graphLaunch(exec, first), kSuccess);
    ASSERT_EQ(driver.streamSynchronize(first), kSuccess);
    EXPECT_EQ(*host, 0x0101010101010101);
  }
  driver.graphExecDestroy(exec);
  driver.eventDestroy(back);
}

TEST_F(SimulatedDriverTest, RefusesGraphsThatLoseAStream) {
  ASSERT_EQ(driver.streamBeginCapture(first, kCaptureThreadLocal), kSuccess);
  ASSERT_EQ(driver.eventRecord(event, first), kSuccess);
  ASSERT_EQ(driver.streamWaitEvent(second, event, 0), kSuccess);
  ASSERT_EQ(driver.memsetD8Async(place, 1, 8, second), kSuccess);
  GraphHandle graph;
  EXPECT_THAT(textOf(driver.streamEndCapture(first, &graph)),
              HasSubstr("is not joined"));
}

/// The streams' times meet at an event; external ones are timed in replays.
/// The graph that TCC_EMULATED_GRAPHS had written first, which is then gone.
static std::string readGraph() {
  std::string path = testing::TempDir() + std::to_string(getpid()) + "-1.graph";
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  unlink(path.c_str());
  return text.str();
}

/// Also of a graph that is written as text.
TEST_F(SimulatedDriverTest, ClocksMeetAtEvents) {
  EventHandle times[2];
  for (EventHandle &time : times)
    driver.eventCreate(&time, 0);
  Address large;
  driver.memAlloc(&large, 2 << 20);
  ASSERT_EQ(driver.streamBeginCapture(first, kCaptureThreadLocal), kSuccess);
  ASSERT_EQ(driver.eventRecordWithFlags(times[0], first, kRecordExternal),
            kSuccess);
  ASSERT_EQ(driver.eventRecord(event, first), kSuccess);
  ASSERT_EQ(driver.streamWaitEvent(second, event, 0), kSuccess);
  ASSERT_EQ(driver.memcpyDtoDAsync(large, large + (1 << 20), 1 << 20, second),
            kSuccess);
  ASSERT_EQ(launch(first, place), kSuccess);
  ASSERT_EQ(driver.eventRecord(event, second), kSuccess);
  ASSERT_EQ(driver.streamWaitEvent(first, event, 0), kSuccess);
  ASSERT_EQ(driver.eventRecordWithFlags(times[1], first, kRecordExternal),
            kSuccess);
  GraphHandle graph;
  setenv("TCC_EMULATED_GRAPHS", testing::TempDir().c_str(), /*overwrite=*/1);
  ASSERT_EQ(driver.streamEndCapture(first, &graph), kSuccess);
  unsetenv("TCC_EMULATED_GRAPHS");
  EXPECT_EQ(readGraph(), "0 time\n0 record 0\n0 launch increment\n0 wait 1\n"
                         "0 time\n1 wait 0\n1 copy 1048576\n1 record 1\n");
  GraphExecHandle exec;
  ASSERT_EQ(driver.graphInstantiateWithFlags(&exec, graph, 0), kSuccess);
  driver.graphDestroy(graph);
  ASSERT_EQ(driver.memsetD8Async(place, 0, 16, first), kSuccess);
  for (int replay = 0; replay < 2; ++replay) {
    float milliseconds = 0;
    ASSERT_EQ(driver.graphLaunch(exec, first), kSuccess);
    ASSERT_EQ(driver.streamSynchronize(first), kSuccess);
    ASSERT_EQ(driver.eventElapsedTime(&milliseconds, times[0], times[1]),
              kSuccess);
    EXPECT_FLOAT_EQ(milliseconds, 1.025f); // a microsecond a KiB, and one
  }
  driver.graphExecDestroy(exec);
  driver.memFree(large);
  for (EventHandle time : times)
    driver.eventDestroy(time);
}
