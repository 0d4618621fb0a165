#include "compiler/codegen/cuda/emulation/Emulation.h"
#include "compiler/codegen/cpu/object/ImageLinker.h"
#include "compiler/codegen/cuda/nvvm/DeviceCode.h"
#include "mlir/Parser/Parser.h"
#include "runtime/devices/emulated/Emulator.h"
#include "runtime/package/Image.h"
#include "tests/compiler/codegen/cuda/Kernels.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <cmath>
#include <numeric>
#include <span>

using namespace mlir;
using namespace tcc;
using namespace tcc::emulated;
using testing::HasSubstr;
using Order = Schedule::Order;

namespace {

constexpr Schedule kSchedules[] = {{Order::forward},
                                   {Order::reverse},
                                   {Order::random, 1},
                                   {Order::random, 2},
                                   {Order::random, 3}};

class EmulationTest : public testing::Test {
protected:
  EmulationTest() {
    DialectRegistry registry;
    cuda::registerDeviceCode(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  /// Compiles the kernel `name` into this process.
  void compile(const std::string &source, const char *name,
               bool isChecked = true) {
    kernelName = name;
    auto module = parseSourceString<ModuleOp>(source, &context);
    ASSERT_TRUE(module);
    std::string error;
    auto object =
        cuda::emitEmulation(*module, *cpu::getHostCpu(error), isChecked);
    ASSERT_TRUE(succeeded(object));
    auto linked = cpu::linkImage(StringRef(object->data(), object->size()),
                                 std::string(name));
    ASSERT_TRUE(bool(linked)) << toString(linked.takeError());
    auto mapped =
        runtime::CodeImage::map(std::as_bytes(std::span(linked->bytes)));
    ASSERT_TRUE(mapped.ok()) << mapped.takeStatus().message();
    image.emplace(std::move(*mapped));
    kernel = reinterpret_cast<EmulatedKernel>(
        reinterpret_cast<void *>(image->kernelAt(linked->offsets[0])));
    ASSERT_NE(kernel, nullptr);
  }

  template <typename... Parameters>
  std::string launch(Schedule schedule, uint32_t blocks, uint32_t threads,
                     Parameters... parameters) {
    void *addresses[] = {&parameters...};
    Emulator emulator(schedule);
    return std::string(
        emulator.launch({kernel, blocks, threads, addresses, kernelName})
            .message());
  }

  MLIRContext context;
  std::optional<runtime::CodeImage> image;
  EmulatedKernel kernel = nullptr;
  const char *kernelName = nullptr;
};

uint16_t toBF16(float x) {
  uint32_t bits = std::bit_cast<uint32_t>(x);
  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

float fromBF16(uint16_t bits) {
  return std::bit_cast<float>(uint32_t(bits) << 16);
}

TEST_F(EmulationTest, pointwiseKernelRoundsToNearestEven) {
  compile(kExpKernel, "round_exp");
  constexpr size_t size = 1000;
  std::vector<uint16_t> x(size), y(size + 8, 0x1234);
  for (size_t i = 0; i < size; ++i)
    x[i] = toBF16(-4.0f + 0.0079f * i);
  for (Schedule schedule : kSchedules) {
    EXPECT_EQ(launch(schedule, 2, 64, x.data(), y.data(), int64_t(size)), "");
    for (size_t i = 0; i < size; ++i)
      EXPECT_NEAR(fromBF16(y[i]), std::exp(fromBF16(x[i])),
                  fromBF16(y[i]) * 0x1.01p-8f);
    EXPECT_EQ(y[size], 0x1234);
  }
}

TEST_F(EmulationTest, parametersMustBeAlignedAsPromised) {
  compile(kExpKernel, "round_exp");
  alignas(16) uint16_t x[24] = {}, y[16];
  EXPECT_EQ(launch({}, 1, 64, &x[0], &y[0], int64_t(8)), "");
  EXPECT_EQ(launch({}, 1, 64, &x[4], &y[0], int64_t(8)),
            "kernel round_exp, block 0: thread 0 takes parameter 0 for a "
            "multiple of 16 bytes");
}

/// Sums of 8 rows of 1000 under all schedules, which must have the same bits.
class SumTest : public EmulationTest {
protected:
  static constexpr size_t rows = 8, columns = 1000;

  SumTest() : x(rows * columns), y(rows) {
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = float(i % 977) / 32;
  }
  std::string run(Schedule schedule) {
    return launch(schedule, rows, 128, x.data(), y.data(), int64_t(columns));
  }

  std::vector<float> x, y;
};

TEST_F(SumTest, reductionIsRightUnderAllSchedules) {
  compile(substitute(kSumKernel, "MARKER", "gpu.barrier"), "sum");
  for (Schedule schedule : kSchedules) {
    EXPECT_EQ(run(schedule), "");
    for (size_t row = 0; row < rows; ++row)
      EXPECT_EQ(y[row], std::accumulate(&x[row * columns],
                                        &x[row * columns] + columns, 0.0f));
  }
}

TEST_F(SumTest, missingBarrierIsARace) {
  compile(substitute(kSumKernel, "MARKER", ""), "sum");
  for (Schedule schedule : kSchedules)
    EXPECT_THAT(run(schedule), HasSubstr("of shared memory that thread"));
}

TEST_F(SumTest, divergentBarrierIsADeadlock) {
  compile(
      substitute(kSumKernel, "MARKER", R"(scf.if %isFirst { gpu.barrier })"),
      "sum");
  for (Schedule schedule : kSchedules)
    EXPECT_THAT(run(schedule),
                HasSubstr("deadlock: 4 threads wait at a barrier (first 0)"));
}

/// Transposes 12 tiles in 3 blocks.
class TransposeTest : public EmulationTest {
protected:
  static constexpr size_t tiles = 12;

  void build(const char *written, const char *read, bool isChecked) {
    compile(substitute(substitute(kTransposeKernel, "WRITTEN", written), "READ",
                       read),
            "transpose", isChecked);
  }
  std::string run(Schedule schedule) {
    std::iota(x.begin(), x.end(), 0.0f);
    return launch(schedule, tiles / 4, 256, x.data(), y.data());
  }
  bool isTransposed() const {
    for (size_t i = 0; i < x.size(); ++i)
      if (y[i / 1024 * 1024 + i % 32 * 32 + i / 32 % 32] != x[i])
        return false;
    return true;
  }

  std::vector<float> x = std::vector<float>(tiles * 1024), y = x;
};

TEST_F(TransposeTest, tileIsRightUnderAllSchedules) {
  for (bool isChecked : {false, true}) {
    build("gpu.barrier", "gpu.barrier", isChecked);
    for (Schedule schedule : kSchedules) {
      EXPECT_EQ(run(schedule), "");
      EXPECT_TRUE(isTransposed());
    }
  }
}

TEST_F(TransposeTest, eachBarrierIsNeeded) {
  const std::pair<const char *, const char *> lacking[] = {{"", "gpu.barrier"},
                                                           {"gpu.barrier", ""}};
  for (auto [written, read] : lacking) {
    build(written, read, /*isChecked=*/true);
    EXPECT_THAT(run({Order::forward}), HasSubstr("of shared memory"));
    // Wrong values show it as well, where warps run ahead.
    build(written, read, /*isChecked=*/false);
    EXPECT_EQ(run({Order::random, 1}), "");
    EXPECT_FALSE(isTransposed());
  }
}

TEST_F(EmulationTest, unknownIntrinsicIsAnError) {
  std::string message;
  ScopedDiagnosticHandler handler(
      &context, [&](Diagnostic &diagnostic) { message = diagnostic.str(); });
  auto module = parseSourceString<ModuleOp>(R"(
gpu.module @kernels {
gpu.func @k() kernel {
  %0 = nvvm.read.ptx.sreg.clock : i32
  %1 = llvm.inttoptr %0 : i32 to !llvm.ptr
  llvm.store %0, %1 : i32, !llvm.ptr
  gpu.return
}})",
                                            &context);
  std::string error;
  EXPECT_TRUE(
      failed(cuda::emitEmulation(*module, *cpu::getHostCpu(error), false)));
  EXPECT_EQ(message, "the emulation has no llvm.nvvm.read.ptx.sreg.clock");
}

} // namespace
