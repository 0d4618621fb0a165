// Streams of the caller and tensors on a device, through the public API.

#include "tcc/runtime.hpp"

#include "runtime/devices/cuda/OpenCuda.h"
#include "runtime/executor/DLPack.h"
#include "tests/runtime/Fixture.h"

#include <algorithm>

using namespace tcc::runtime;
using namespace tcc::tests;

namespace {

constexpr size_t kCount = 8, kBytes = kCount * sizeof(float);

/// What a program that uses CUDA itself has beside tcc's: a stream, tensors on
/// the device and pinned memory. The driver does everything as late as it may.
class StreamApiTest : public testing::Test {
protected:
  void SetUp() override {
    ProgramBuilder builder = addOneProgram();
    builder.compileForDevice();
    builder.write(folder / "m.tcc");
    package.emplace(tcc::Package::open(folder / "m.tcc"));
    program.emplace(*package, tcc::ProgramOptions{.device = "emulated"});
    cuda::ContextHandle context = nullptr;
    driver.devicePrimaryCtxRetain(&context, 0);
    driver.ctxPushCurrent(context);
    driver.streamCreate(&created, cuda::kNonBlocking);
    driver.memAlloc(&x, kBytes);
    driver.memAlloc(&y, kBytes);
    void *pinned = nullptr;
    driver.memHostAlloc(&pinned, 2 * kBytes, 0);
    in = static_cast<float *>(pinned);
    out = in + kCount;
  }
  void TearDown() override {
    EXPECT_EQ(driver.streamSynchronize(created), cuda::kSuccess);
    driver.streamDestroy(created);
    driver.memFreeHost(in);
    driver.memFree(x);
    driver.memFree(y);
    cuda::ContextHandle popped = nullptr;
    driver.ctxPopCurrent(&popped);
    driver.devicePrimaryCtxRelease(0);
  }

  /// Binds x and y.
  void bindTensors(tcc::Context &context) {
    dlpack::Tensor from = {};
    from.data = reinterpret_cast<void *>(x);
    from.deviceType = dlpack::kCuda;
    from.rank = 2;
    from.code = dlpack::kFloat;
    from.bits = 32;
    from.lanes = 1;
    from.shape = shape;
    dlpack::Tensor to = from;
    to.data = reinterpret_cast<void *>(y);
    context.bind(0, reinterpret_cast<DLManagedTensor *>(&from));
    context.bindOutput(0, reinterpret_cast<DLManagedTensor *>(&to));
  }

  /// y = x + 1 between a copy to x and one from y in the caller's stream, which
  /// alone is waited for; returns the copy of y.
  std::vector<float> runBetween(tcc::Context &context,
                                cuda::StreamHandle stream, float value) {
    std::fill_n(in, kCount, value);
    std::fill_n(out, kCount, -1.0f);
    EXPECT_EQ(driver.memcpyHtoDAsync(x, in, kBytes, stream), cuda::kSuccess);
    context.start();
    EXPECT_EQ(driver.memcpyDtoHAsync(out, y, kBytes, stream), cuda::kSuccess);
    // x is the caller's again.
    EXPECT_EQ(driver.memsetD8Async(x, 0x7f, kBytes, stream), cuda::kSuccess);
    EXPECT_EQ(driver.streamSynchronize(stream), cuda::kSuccess);
    std::vector<float> found(out, out + kCount);
    context.finish();
    return found;
  }

  const cuda::Driver &driver = *unwrap(cuda::findEmulatedDriver());
  TemporaryFolder folder;
  std::optional<tcc::Package> package;
  std::optional<tcc::Program> program;
  cuda::StreamHandle created = nullptr;
  cuda::Address x = 0, y = 0;
  float *in = nullptr, *out = nullptr;
  int64_t shape[2] = {2, 4};
};

tcc_code codeOf(tcc_status status) {
  tcc_code code = tcc_status_code(status);
  tcc_status_free(status);
  return code;
}

} // namespace

TEST_F(StreamApiTest, RunsAreOrderedWithTheCallersStream) {
  tcc::Context context(*program);
  bindTensors(context);
  // The legacy stream first; later runs are captured, and replayed.
  for (cuda::StreamHandle stream : {cuda::StreamHandle(), created}) {
    context.setStream(stream);
    for (float value : {1.0f, 2.0f, 3.0f, 4.0f})
      EXPECT_EQ(runBetween(context, stream, value),
                std::vector<float>(kCount, value + 1));
  }
}

/// Nobody waits for the caller's stream but the run.
TEST_F(StreamApiTest, RunsWaitForTheCallersStream) {
  tcc::Context context(*program);
  bindTensors(context);
  context.setStream(created);
  for (float value : {1.0f, 2.0f, 3.0f, 4.0f}) {
    std::fill_n(in, kCount, value);
    ASSERT_EQ(driver.memcpyHtoDAsync(x, in, kBytes, created), cuda::kSuccess);
    context.run();
    ASSERT_EQ(driver.memcpyDtoHAsync(out, y, kBytes, nullptr), cuda::kSuccess);
    ASSERT_EQ(driver.streamSynchronize(nullptr), cuda::kSuccess);
    EXPECT_EQ(std::vector<float>(out, out + kCount),
              std::vector<float>(kCount, value + 1));
  }
}

/// What the tests above would find if nothing were ordered.
TEST_F(StreamApiTest, WithoutAStreamNothingIsOrdered) {
  tcc::Context context(*program);
  bindTensors(context);
  EXPECT_NE(runBetween(context, created, 1), std::vector<float>(kCount, 2));
}

TEST_F(StreamApiTest, SaysWhereAnOutputLies) {
  tcc::Context context(*program);
  bindTensors(context);
  context.setStream(created);
  runBetween(context, created, 5);
  tcc::Tensor output = context.output(0);
  EXPECT_EQ(output.device(), 0);
  EXPECT_EQ(output.bytes(), reinterpret_cast<void *>(y));
  std::vector<float> host(kCount, 1), result(kCount);
  context.bind("x", host.data(), {2, 4});
  context.bindOutput(0, result.data(), kCount);
  context.run();
  EXPECT_EQ(context.output(0).device(), -1);
  EXPECT_EQ(result, std::vector<float>(kCount, 2));
}

TEST_F(StreamApiTest, NothingIsCalledWhileARunIsUnderWay) {
  tcc::Context context(*program);
  EXPECT_EQ(codeOf(tcc_context_finish(context.get())), TCC_USAGE);
  std::vector<float> host(kCount, 1), result(kCount);
  tcc_tensor tensor = {host.data(), TCC_F32, 2, shape};
  context.bind("x", host.data(), {2, 4});
  context.start();
  host.assign(kCount, 7); // it was copied
  EXPECT_EQ(codeOf(tcc_context_start(context.get())), TCC_USAGE);
  EXPECT_EQ(codeOf(tcc_context_run(context.get())), TCC_USAGE);
  EXPECT_EQ(codeOf(tcc_context_bind_input(context.get(), 0, &tensor)),
            TCC_USAGE);
  EXPECT_EQ(
      codeOf(tcc_context_bind_output(context.get(), 0, result.data(), kBytes)),
      TCC_USAGE);
  EXPECT_EQ(codeOf(tcc_context_set_dim(context.get(), "batch", 2)), TCC_USAGE);
  EXPECT_EQ(codeOf(tcc_context_set_stream(context.get(), created)), TCC_USAGE);
  EXPECT_EQ(codeOf(tcc_context_output(context.get(), 0, &tensor)), TCC_USAGE);
  context.finish();
  EXPECT_EQ(context.output(0).data<float>()[7], 2);
  context.start();
  context.resetState(); // waits for it
  context.run();
  EXPECT_EQ(context.output(0).data<float>()[7], 8);
}
