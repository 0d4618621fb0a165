#include "runtime/data/Batches.h"

#include "runtime/data/Widen.h"
#include "tests/runtime/Fixture.h"

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace tcc::runtime;
using namespace tcc::tests;

namespace {

/// One tensor, of which sample i is i.
class Counting final : public BatchSource {
public:
  int64_t sampleCount() const override { return 7; }
  Status read(size_t, std::span<const int64_t> samples,
              std::span<std::byte> bytes) override {
    std::ranges::copy(std::as_bytes(samples), bytes.begin());
    return Status();
  }
};

} // namespace

TEST(BatchReader, LeavesOutWhatFillsNoBatch) {
  BatchTensor tensors[] = {{"x", DType::i64, {3}}};
  BatchReader reader = unwrap(BatchReader::create(
      std::make_unique<Counting>(), tensors, SampleOrder(7, 0, false)));
  EXPECT_EQ(reader.batchesPerEpoch(), 2);
  for (int64_t batch : {1, 3}) {
    ASSERT_THAT(reader.read(batch), succeeds());
    auto data =
        reinterpret_cast<const int64_t *>(reader.tensors()[0].data.data());
    EXPECT_EQ(std::vector<int64_t>(data, data + 3),
              (std::vector<int64_t>{3, 4, 5}));
  }
  tensors[0].shape = {8};
  EXPECT_THAT(BatchReader::create(std::make_unique<Counting>(), tensors,
                                  SampleOrder(7, 0, false))
                  .takeStatus(),
              failsWith(Code::Usage, "have 7 samples"));
}

TEST(BatchReader, FindsTheSampleOfANumber) {
  BatchTensor tensors[] = {{"x", DType::i64, {3}}};
  BatchReader reader = unwrap(BatchReader::create(
      std::make_unique<Counting>(), tensors, SampleOrder(7, 0, false)));
  ASSERT_THAT(reader.read(1), succeeds());
  EXPECT_EQ(reader.findSample(0, 4), 4);
  EXPECT_EQ(reader.findSample(0, 2), std::nullopt);
  EXPECT_EQ(reader.findSample(0, -1), std::nullopt);
}

TEST(BatchReader, FillsUpWhatHasWeights) {
  BatchTensor tensors[] = {{"sample_weight", DType::f32, {2}}};
  class Weighing final : public BatchSource {
    int64_t sampleCount() const override { return 3; }
    Status read(size_t, std::span<const int64_t> samples,
                std::span<std::byte> bytes) override {
      for (size_t i = 0; i < samples.size(); ++i) {
        float weight = float(samples[i] + 1);
        std::memcpy(bytes.data() + i * sizeof(float), &weight, sizeof(float));
      }
      return Status();
    }
  };
  BatchReader reader = unwrap(BatchReader::create(
      std::make_unique<Weighing>(), tensors, SampleOrder(3, 0, false)));
  EXPECT_EQ(reader.batchesPerEpoch(), 2);
  EXPECT_EQ(reader.samplesPerEpoch(), 3);
  auto weights =
      reinterpret_cast<const float *>(reader.tensors()[0].data.data());
  ASSERT_THAT(reader.read(0), succeeds());
  EXPECT_EQ(std::vector(weights, weights + 2), (std::vector<float>{1, 2}));
  ASSERT_THAT(reader.read(1), succeeds());
  EXPECT_EQ(std::vector(weights, weights + 2), (std::vector<float>{3, 0}));
}

template <typename To, typename From>
static std::vector<To> widened(DType to, DType from, std::vector<From> values) {
  Tensor tensor = unwrap(Tensor::allocate(from, {int64_t(values.size())}));
  std::ranges::copy(std::as_bytes(std::span(values)), tensor.data.data());
  Tensor wide = unwrap(widen(std::move(tensor), to));
  EXPECT_EQ(wide.dtype, to);
  auto data = reinterpret_cast<const To *>(wide.data.data());
  return {data, data + wide.data.size() / sizeof(To)};
}

TEST(Widen, KeepsValues) {
  EXPECT_EQ((widened<int64_t, int32_t>(DType::i64, DType::i32, {-5, 7})),
            (std::vector<int64_t>{-5, 7}));
  EXPECT_EQ((widened<int64_t, uint8_t>(DType::i64, DType::u8, {250})),
            std::vector<int64_t>{250});
  EXPECT_EQ((widened<double, float>(DType::f64, DType::f32, {0.1f, -2})),
            (std::vector<double>{0.1f, -2}));
  EXPECT_EQ((widened<float, uint16_t>(DType::f32, DType::f16,
                                      {0x3c00, 0xc000, 0x0001, 0x7c00})),
            (std::vector<float>{1, -2, 0x1p-24f, HUGE_VALF}));
  EXPECT_TRUE(std::isnan(
      widened<float, uint16_t>(DType::f32, DType::f16, {0x7e00})[0]));
  EXPECT_EQ((widened<double, uint16_t>(DType::f64, DType::f16, {0x3555})),
            std::vector<double>{0x1.554p-2});
  Tensor tensor = unwrap(Tensor::allocate(DType::i64, {1}));
  EXPECT_EQ(unwrap(widen(std::move(tensor), DType::i32)).dtype, DType::i64);
}
