// Programs of two lanes on the emulated device: what they take by its clock,
// and what becomes of them where an edge is missing.

#include "runtime/devices/cuda/CudaDevice.h"
#include "runtime/devices/cuda/OpenCuda.h"
#include "runtime/executor/Walker.h"
#include "tests/runtime/Fixture.h"

#include <cstring>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::tests;
using format::StorageClass;

static constexpr uint64_t kCopied = 300 << 10;
/// By the simulator's clock: 1 and 1 for each KiB; 100 for each launch.
static constexpr double kCopyTime = 301, kComputeTime = 200;

static std::vector<Expr> sizesOfOne() {
  std::vector<Expr> sizes;
  sizes.push_back(constant(1));
  sizes.push_back(constant(1));
  return sizes;
}

namespace {

struct Parts {
  bool copies = true, computes = true;
  uint16_t lane = 0; ///< of the copy
};

} // namespace

static ProgramBuilder copyBesideCompute(const Parts &parts) {
  ProgramBuilder builder;
  uint32_t from = builder.scratch(kCopied), to = builder.scratch(kCopied);
  uint32_t value = builder.scratch(4);
  if (parts.lane > 0)
    builder.orderLanes(0, parts.lane);
  builder.onLane(parts.lane);
  if (parts.copies)
    builder.copy(from, to, kCopied);
  builder.onLane(0);
  for (int i = 0; parts.computes && i < 2; ++i)
    builder.launch("add_one", {value, value}, sizesOfOne(), constant(1));
  if (parts.lane > 0)
    builder.orderLanes(parts.lane, 0);
  return builder;
}

/// Microseconds of a first run, one that is captured, and one of its graph.
static std::vector<double> measure(const Parts &parts) {
  ProgramBuilder builder = copyBesideCompute(parts);
  auto executable = loadEmulated(builder);
  auto context = unwrap(Context::create(executable));
  auto &device = static_cast<cuda::CudaDevice &>(executable->device());
  const cuda::Driver &driver = device.driver();
  auto active = unwrap(device.activate());
  cuda::StreamHandle stream = nullptr;
  cuda::EventHandle begin = nullptr, end = nullptr;
  driver.streamCreate(&stream, cuda::kNonBlocking);
  driver.eventCreate(&begin, 0);
  driver.eventCreate(&end, 0);
  EXPECT_THAT(context->setStream(stream), succeeds());
  std::vector<double> times;
  for (int run = 0; run < 4; ++run) {
    float milliseconds = 0;
    driver.eventRecord(begin, stream);
    EXPECT_THAT(context->run(), succeeds());
    driver.eventRecord(end, stream);
    driver.eventSynchronize(end);
    driver.eventElapsedTime(&milliseconds, begin, end);
    times.push_back(milliseconds * 1e3);
  }
  driver.eventDestroy(begin);
  driver.eventDestroy(end);
  driver.streamDestroy(stream);
  return times;
}

TEST(Lanes, TakeTheLongerOfBoth) {
  std::vector<double> alone = measure({.copies = false, .computes = false});
  std::vector<double> copy = measure({.computes = false});
  std::vector<double> compute = measure({.copies = false});
  std::vector<double> oneLane = measure({}), twoLanes = measure({.lane = 1});
  for (size_t run = 0; run < alone.size(); ++run) {
    SCOPED_TRACE(run);
    auto taken = [&](const std::vector<double> &times) {
      return times[run] - alone[run];
    };
    EXPECT_NEAR(taken(copy), kCopyTime, 1e-3);
    EXPECT_NEAR(taken(compute), kComputeTime, 1e-3);
    EXPECT_NEAR(taken(oneLane), kCopyTime + kComputeTime, 1e-3);
    EXPECT_NEAR(taken(twoLanes), std::max(kCopyTime, kComputeTime), 1e-3);
  }
}

namespace {

/// a = x + 1; lane 1: b = a; y = b + 1. `left` tells of each edge, from lane 0
/// to lane 1 and back, whether it is there.
class TwoEdges {
public:
  TwoEdges(std::vector<bool> left) {
    x = builder.buffer(StorageClass::input, builder.input("x", DType::f32, {}),
                       4);
    y = builder.buffer(StorageClass::output,
                       builder.output("y", DType::f32, {}), 4);
    uint32_t a = builder.scratch(4), b = builder.scratch(4);
    builder.launch("add_one", {x, a}, sizesOfOne(), constant(1));
    if (left[0])
      builder.orderLanes(0, 1);
    builder.onLane(1);
    builder.copy(a, b, 4);
    builder.onLane(0);
    if (left[1])
      builder.orderLanes(1, 0);
    builder.launch("add_one", {b, y}, sizesOfOne(), constant(1));
    builder.compileForDevice();
    bytes = builder.program();
  }

  /// Whether some runs on device `ordinal`, none verified, give x + 2.
  bool isRight(int ordinal);

private:
  ProgramBuilder builder;
  std::vector<std::byte> bytes;
  uint32_t x, y;
};

} // namespace

bool TwoEdges::isRight(int ordinal) {
  // The device has the kernels of a program that passes verification.
  TemporaryFolder folder;
  ProgramBuilder whole = addOneProgram();
  whole.compileForDevice();
  whole.write(folder / "m.tcc");
  auto package = unwrap(Package::open(folder / "m.tcc"));
  auto device = unwrap(cuda::CudaDevice::open(
      *unwrap(cuda::findEmulatedDriver()),
      {.ordinal = ordinal, .isEmulated = true}, *package, {}, LogSink()));
  const format::Program &program = *format::GetProgram(bytes.data());
  const format::Entry *entry = program.entries()->Get(0);
  Walker walker(program, *entry,
                unwrap(Workspace::create(*device, std::span(&entry, 1), {})));
  Allocator allocator = device->allocator(systemAllocator());
  Memory in = unwrap(Memory::allocate(64, allocator, "x"));
  Memory out = unwrap(Memory::allocate(64, allocator, "y"));
  walker.bind(StorageClass::input, 0, in.data());
  walker.bind(StorageClass::output, 0, out.data());
  bool isRight = true;
  for (float value : {3, 5, 8, 13, 21}) {
    float found = 0;
    EXPECT_THAT(device->write(in.data(), &value, 4), succeeds());
    EXPECT_THAT(walker.walk(), succeeds());
    EXPECT_THAT(walker.seal(), succeeds());
    EXPECT_THAT(walker.finish(), succeeds());
    EXPECT_THAT(device->read(&found, out.data(), 4), succeeds());
    isRight &= found == value + 2;
  }
  return isRight;
}

TEST(Lanes, AreRightByTheirEdgesAlone) {
  for (int ordinal : {0, 1, 2})
    EXPECT_TRUE(TwoEdges({true, true}).isRight(ordinal)) << ordinal;
  TwoEdges fork({false, true}), join({true, false});
  EXPECT_FALSE(fork.isRight(0) && fork.isRight(1));
  EXPECT_FALSE(join.isRight(0) && join.isRight(1));
}
