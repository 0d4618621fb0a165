#include "runtime/base/NearestWord.h"

#include <gtest/gtest.h>

using tcc::runtime::nearestWord;

TEST(NearestWord, IsTheOneOfFewestLetters) {
  EXPECT_EQ(nearestWord("--ouput", {"--output", "--input"}), "--output");
  EXPECT_EQ(nearestWord("zzz", {"run", "bench"}), "");
}
