#include "runtime/data/BatchMixer.h"
#include "tests/runtime/Fixture.h"

#include <cmath>
#include <numeric>

using namespace tcc::runtime;
using namespace tcc::tests;

namespace {

constexpr int64_t kBatch = 5, kHeight = 12, kWidth = 9, kClasses = 5;

/// Samples whose pixels are all the sample's number, and one-hot targets of it.
struct Batch {
  std::vector<float> pixels, shares;
  std::vector<int64_t> imageShape = {kBatch, 3, kHeight, kWidth};
  std::vector<int64_t> targetShape = {kBatch, kClasses};

  Batch() : shares(kBatch * kClasses) {
    for (int64_t i = 0; i < kBatch; ++i) {
      pixels.insert(pixels.end(), 3 * kHeight * kWidth, float(i));
      shares[i * kClasses + i] = 1;
    }
  }
  std::vector<TensorView> views() {
    return {{pixels.data(), DType::f32, imageShape},
            {shares.data(), DType::f32, targetShape}};
  }
  float share(int64_t sample, int64_t of) const {
    return shares[sample * kClasses + of];
  }
};

std::vector<BatchTensor> describe(DType image = DType::f32,
                                  DType target = DType::f32) {
  std::vector<BatchTensor> tensors = {
      {"image", image, {kBatch, 3, kHeight, kWidth}},
      {"labels", target, {kBatch, kClasses}}};
  tensors[1].isTarget = true;
  return tensors;
}

BatchMixer make(const std::string &line) {
  MixingLine lines[] = {unwrap(MixingLine::read(line))};
  return unwrap(BatchMixer::make(lines, describe(), /*seed=*/3));
}

int64_t before(int64_t sample) { return (sample + kBatch - 1) % kBatch; }

} // namespace

TEST(BatchMixer, ReadsLines) {
  EXPECT_EQ(unwrap(MixingLine::read("mixup 0.2")).alpha, 0.2);
  EXPECT_EQ(unwrap(MixingLine::read("cutmix 1")).kind,
            MixingLine::Kind::cutmix);
  for (const char *line : {"", "mixup", "mixup ", "mixup 0", "cutmix -1",
                           "cutmix 1x", "blend 1", "mixup 1 2", "mixup inf"})
    EXPECT_THAT(MixingLine::read(line).takeStatus(),
                failsWith(Code::Usage, "mixes nothing"))
        << line;
}

TEST(BatchMixer, BlendsWithThePreviousSample) {
  BatchMixer mixer = make("mixup 1");
  std::vector<float> shares;
  for (int64_t number = 0; number < 6; ++number) {
    Batch batch, again;
    mixer.mix(number, batch.views());
    mixer.mix(number, again.views());
    EXPECT_EQ(batch.pixels, again.pixels);
    float share = batch.share(0, 0);
    shares.push_back(share);
    EXPECT_GT(share, 0);
    EXPECT_LT(share, 1);
    for (int64_t i = 0; i < kBatch; ++i) {
      EXPECT_EQ(batch.share(i, i), share);
      EXPECT_NEAR(batch.share(i, before(i)), 1 - share, 1e-6);
      float expected = share * float(i) + (1 - share) * float(before(i));
      for (int64_t at = 0; at < 3 * kHeight * kWidth; ++at)
        EXPECT_NEAR(batch.pixels[i * 3 * kHeight * kWidth + at], expected,
                    1e-5);
    }
  }
  EXPECT_NE(shares[0], shares[1]);
}

/// What is left of a sample is its share, the rest that of the one before.
TEST(BatchMixer, CutsByArea) {
  BatchMixer mixer = make("cutmix 1");
  for (int64_t number = 0; number < 40; ++number) {
    Batch batch;
    mixer.mix(number, batch.views());
    for (int64_t i = 0; i < kBatch; ++i) {
      const float *own = batch.pixels.data() + i * 3 * kHeight * kWidth;
      int64_t taken = 0, rows = 0;
      for (int64_t row = 0; row < kHeight; ++row) {
        int64_t of = 0;
        for (int64_t column = 0; column < kWidth; ++column) {
          float pixel = own[row * kWidth + column];
          EXPECT_TRUE(pixel == float(i) || pixel == float(before(i)));
          of += pixel != float(i);
          EXPECT_EQ(own[(kHeight + row) * kWidth + column], pixel);
          EXPECT_EQ(own[(2 * kHeight + row) * kWidth + column], pixel);
        }
        taken += of;
        rows += of > 0;
      }
      EXPECT_EQ(rows ? taken % rows : 0, 0); // a box
      float share = 1 - float(taken) / float(kHeight * kWidth);
      EXPECT_NEAR(batch.share(i, i), share, 1e-6);
      EXPECT_NEAR(batch.share(i, before(i)), 1 - share, 1e-6);
    }
  }
}

TEST(BatchMixer, NeedsImagesAndShares) {
  MixingLine lines[] = {unwrap(MixingLine::read("mixup 1"))};
  auto fails = [&](std::vector<BatchTensor> tensors) {
    return BatchMixer::make(lines, tensors, 0).takeStatus();
  };
  EXPECT_THAT(fails(describe(DType::u8)),
              failsWith(Code::Usage, "mixup needs f32, and 'image' has bytes"));
  EXPECT_THAT(fails(describe(DType::f32, DType::i64)),
              failsWith(Code::Usage, "needs a target of floats"));
  std::vector<BatchTensor> alone = describe();
  alone.erase(alone.begin());
  EXPECT_THAT(fails(alone), failsWith(Code::Usage, "no input is an image"));
  lines[0].kind = MixingLine::Kind::cutmix;
  EXPECT_TRUE(BatchMixer::make(lines, describe(DType::u8), 0).ok());
}

/// The mean and the variance of Beta(a, a), and of the smallest a all or
/// nothing.
TEST(BatchMixer, DrawsBeta) {
  constexpr int kDraws = 100000;
  for (double alpha : {1e-4, 0.2, 1.0, 4.0, 50.0}) {
    SplitMix64 draws(11);
    double sum = 0, squares = 0;
    for (int i = 0; i < kDraws; ++i) {
      double share = drawBeta(draws, alpha);
      ASSERT_TRUE(share >= 0 && share <= 1);
      sum += share;
      squares += (share - 0.5) * (share - 0.5);
    }
    double variance = 1 / (4 * (2 * alpha + 1));
    EXPECT_NEAR(sum / kDraws, 0.5, 5 * std::sqrt(variance / kDraws));
    EXPECT_NEAR(squares / kDraws, variance, 0.02 * variance);
  }
}
