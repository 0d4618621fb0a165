#include "compiler/train/Pattern.h"
#include "runtime/base/Glob.h"

#include "gtest/gtest.h"

using namespace tcc::train;
using tcc::runtime::matchesGlob;

namespace {

TEST(PatternTest, StarsCrossDots) {
  EXPECT_TRUE(matchesGlob("*", ""));
  EXPECT_TRUE(matchesGlob("h.*.bias", "h.0.attn.c_attn.bias"));
  EXPECT_TRUE(matchesGlob("*weight", "fc.weight"));
  EXPECT_TRUE(matchesGlob("a*b*c", "a.b.b.c"));
  EXPECT_TRUE(matchesGlob("layer?.w", "layer1.w"));
  EXPECT_FALSE(matchesGlob("fc", "fc.weight"));
  EXPECT_FALSE(matchesGlob("a*b*c", "a.c.b"));
  EXPECT_FALSE(matchesGlob("", "fc"));
}

TEST(PatternTest, TakesLittleTimeForManyStars) {
  std::string stars, text(10000, 'a');
  for (int i = 0; i < 1000; ++i)
    stars += "*a";
  EXPECT_FALSE(matchesGlob(stars + "b", text));
}

TEST(PatternTest, SelectsByTraits) {
  ParameterTraits gamma{"norm.weight", 1, /*isNorm=*/true};
  ParameterTraits matrix{"fc.weight", 2};
  EXPECT_TRUE((Pattern{"ndim<=1", 1, true}).matches(gamma));
  EXPECT_FALSE((Pattern{"ndim<=1", 1, true}).matches(matrix));
  EXPECT_TRUE((Pattern{"norm", 1, true}).matches(gamma));
  EXPECT_FALSE((Pattern{"norm", 1, false}).matches(gamma));
  EXPECT_TRUE(matchesAny({{"bias", 1, true}, {"fc.*", 1, true}}, matrix));
}

} // namespace
