// What a program, a package or a caller may do to the device's part of the
// runtime, on the emulated device.

#include "runtime/devices/cuda/CudaDevice.h"
#include "runtime/executor/PlanEntry.h"
#include "runtime/executor/Walker.h"
#include "tests/runtime/train/LineProgram.h"

#include <cstring>
#include <deque>
#include <functional>
#include <random>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::tests;

/// Of a run that nobody finishes nothing goes while the device works on it.
TEST(CudaRobustness, ContextsEndWithARunUnderWay) {
  ProgramBuilder builder = addOneProgram();
  auto executable = loadEmulated(builder);
  std::vector<float> x = {1, 2, 3, 4};
  for (int runs = 0; runs < 4; ++runs) {
    auto context = unwrap(Context::create(executable));
    ASSERT_THAT(bind(*context, 0, x, {1, 4}), succeeds());
    for (int run = 0; run < runs; ++run) // is captured, and replayed
      ASSERT_THAT(context->run(), succeeds());
    ASSERT_THAT(context->start(), succeeds());
  }
  // A failure of the device would stay.
  auto context = unwrap(Context::create(executable));
  ASSERT_THAT(bind(*context, 0, x, {1, 4}), succeeds());
  EXPECT_THAT(context->run(), succeeds());
}

/// Calls leave the thread the context of CUDA that it had.
TEST(CudaRobustness, TheCallersContextStays) {
  auto table = cuda::findEmulatedDriver();
  ASSERT_TRUE(table.ok());
  const cuda::Driver &driver = **table;
  cuda::ContextHandle theirs = nullptr, found = nullptr;
  constexpr int kOtherDevice = 3;
  driver.devicePrimaryCtxRetain(&theirs, kOtherDevice);
  driver.ctxPushCurrent(theirs);
  {
    ProgramBuilder builder = addOneProgram();
    auto context = unwrap(Context::create(loadEmulated(builder)));
    std::vector<float> x = {1, 2, 3, 4};
    ASSERT_THAT(bind(*context, 0, x, {1, 4}), succeeds());
    for (int run = 0; run < 3; ++run)
      ASSERT_THAT(context->run(), succeeds());
  }
  EXPECT_EQ(driver.ctxPopCurrent(&found), cuda::kSuccess);
  EXPECT_EQ(found, theirs);
  EXPECT_NE(driver.ctxPopCurrent(&found), cuda::kSuccess);
  driver.devicePrimaryCtxRelease(kOtherDevice);
}

static int deviceCopies, graphCount;

/// The emulated driver; counts copies on the device, and graphs.
static const cuda::Driver &countingDriver() {
  static const cuda::Driver &real = *unwrap(cuda::findEmulatedDriver());
  static const cuda::Driver counting = [] {
    cuda::Driver driver = real;
    driver.memcpyDtoDAsync = [](cuda::Address to, cuda::Address from,
                                size_t bytes, cuda::StreamHandle stream) {
      ++deviceCopies;
      return real.memcpyDtoDAsync(to, from, bytes, stream);
    };
    driver.graphInstantiateWithFlags = [](cuda::GraphExecHandle *exec,
                                          cuda::GraphHandle graph,
                                          unsigned long long flags) {
      ++graphCount;
      return real.graphInstantiateWithFlags(exec, graph, flags);
    };
    return driver;
  }();
  return counting;
}

/// The package of a program, and an emulated device whose driver counts.
static auto openCounted(ProgramBuilder &builder) {
  builder.compileForDevice();
  TemporaryFolder folder;
  builder.write(folder / "m.tcc");
  auto package = unwrap(Package::open(folder / "m.tcc"));
  auto device = unwrap(cuda::CudaDevice::open(
      countingDriver(), {.isEmulated = true}, *package, {}, LogSink()));
  return std::pair(std::move(package), std::move(device));
}

/// A shift by little takes few copies.
TEST(CudaRobustness, CopiesBetweenPlacesThatOverlap) {
  constexpr size_t kBytes = 3 << 20, kMost = 5 << 20;
  ProgramBuilder builder;
  uint32_t all = builder.scratch(kMost);
  format::CopyT shift;
  shift.from = builder.view(all, constant(4), kBytes);
  shift.to = all;
  shift.bytes = constant(kBytes);
  builder.command(std::move(shift));
  auto [package, device] = openCounted(builder);
  EntryPlan plan = planEntry(*package->program().entries()->Get(0));
  auto stream = unwrap(device->createStream({&plan, 1}, {}));
  PlannedMemory planned;
  stream->addPlanned(planned);
  EXPECT_EQ(planned.passage, uint64_t(kPassageBytes));
  Memory memory = unwrap(Memory::allocate(kMost, device->allocator({}), "x"));
  std::vector<uint8_t> expected(kMost), found(kMost);
  std::mt19937 random(8);
  std::ranges::generate(expected, std::ref(random));
  ASSERT_THAT(device->write(memory.data(), expected.data(), kMost), succeeds());
  for (size_t distance : {0, 4, 1000, (1 << 20) + 4, 2 << 20})
    for (bool isUp : {false, true}) {
      size_t from = isUp ? 0 : distance, to = isUp ? distance : 0;
      deviceCopies = 0;
      ASSERT_THAT(
          stream->copy(memory.data() + to, memory.data() + from, kBytes),
          succeeds());
      ASSERT_THAT(stream->wait(), succeeds());
      EXPECT_LE(deviceCopies, 6);
      std::memmove(&expected[to], &expected[from], kBytes);
      ASSERT_THAT(device->read(found.data(), memory.data(), kMost), succeeds());
      EXPECT_EQ(found, expected);
    }
}

/// Contexts of one stream in turns, more of them than one has graphs: nothing
/// is captured a second time.
TEST(CudaRobustness, KeepsGraphsOfRunsInTurns) {
  constexpr int kRuns = 12, kRounds = 4;
  constexpr size_t kStride = 64;
  ProgramBuilder builder = addOneProgram();
  auto [package, device] = openCounted(builder);
  Allocator allocator = device->allocator(systemAllocator());
  Memory x = unwrap(Memory::allocate(kStride, allocator, "x"));
  Memory y = unwrap(Memory::allocate(kStride * kRuns, allocator, "y"));
  const format::Entry *entry = package->program().entries()->Get(0);
  auto workspace = unwrap(Workspace::create(*device, std::span(&entry, 1), {}));
  std::deque<Walker> walkers;
  for (int run = 0; run < kRuns; ++run) {
    Walker &walker =
        walkers.emplace_back(package->program(), *entry, workspace);
    walker.slots()[0] = 1;
    walker.bind(format::StorageClass::input, 0, x.data());
    walker.bind(format::StorageClass::output, 0, y.data() + run * kStride);
  }
  graphCount = 0;
  for (int round = 0; round < kRounds; ++round) {
    for (int run = 0; run < kRuns; ++run) {
      std::vector<float> in(4, static_cast<float>(round * kRuns + run)), out(4);
      ASSERT_THAT(device->write(x.data(), in.data(), 16), succeeds());
      ASSERT_THAT(walkers[run].walk(), succeeds());
      ASSERT_THAT(walkers[run].seal(), succeeds());
      ASSERT_THAT(walkers[run].finish(), succeeds());
      ASSERT_THAT(device->read(out.data(), y.data() + run * kStride, 16),
                  succeeds());
      EXPECT_EQ(out, std::vector<float>(4, in[0] + 1));
    }
    // The second run of each is captured.
    EXPECT_EQ(graphCount, round == 0 ? 0 : kRuns);
  }
}

/// What passes the verifier is loaded; whatever it says, nothing ends badly.
TEST(CudaRobustness, LoadsOrRefusesFlippedPrograms) {
  TemporaryFolder folder;
  ProgramBuilder builder = lineProgram();
  builder.compileForDevice();
  std::vector<std::byte> bytes = builder.program();
  std::mt19937 random(7);
  int loaded = 0;
  for (int i = 0; i < 400; ++i) {
    std::vector<std::byte> flipped = bytes;
    flipped[random() % bytes.size()] ^= std::byte(1 << random() % 8);
    std::string path = folder / concat(i, ".tcc");
    builder.write(path, flipped);
    auto package = Package::open(path);
    std::filesystem::remove(path);
    if (!package.ok()) {
      EXPECT_EQ(package.takeStatus().code(), Code::BadData);
      continue;
    }
    ExecutableOptions options;
    options.device = "emulated";
    loaded += Executable::load(*package, options).ok();
  }
  EXPECT_GT(loaded, 20);
}
