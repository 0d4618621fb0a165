#include "tools/cli/ModelFlags.h"

#include <gtest/gtest.h>

using namespace tcc;
using namespace tcc::tools;

TEST(ModelFlags, DimIsASizeOrARange) {
  auto size = parseDimBinding("batch=3");
  ASSERT_TRUE(size);
  EXPECT_EQ(size->name, "batch");
  EXPECT_EQ(size->min, 3);
  EXPECT_EQ(size->max, 3);
  auto range = parseDimBinding("a=b=1..8"); // the name has a '='
  ASSERT_TRUE(range);
  EXPECT_EQ(range->name, "a=b");
  EXPECT_EQ(range->min, 1);
  EXPECT_EQ(range->max, 8);
  EXPECT_EQ(range->step, 1);
  auto multiples = parseDimBinding("height=32..640:32");
  ASSERT_TRUE(multiples);
  EXPECT_EQ(multiples->max, 640);
  EXPECT_EQ(multiples->step, 32);
}

TEST(ModelFlags, DimIsAListOfSizes) {
  auto sizes = parseDimBinding("seq=64,192,128");
  ASSERT_TRUE(sizes);
  EXPECT_EQ(sizes->sizes, (std::vector<int64_t>{64, 192, 128}));
  EXPECT_EQ(sizes->min, 64);
  EXPECT_EQ(sizes->max, 192);
  EXPECT_EQ(sizes->step, 64);
  EXPECT_TRUE(parseDimBinding("seq=8")->sizes.empty());
}

TEST(ModelFlags, MalformedDim) {
  for (const char *text : {"",
                           "batch",
                           "=3",
                           "batch=",
                           "batch=-1",
                           "batch=8..1",
                           "batch=1..",
                           "batch=..8",
                           "batch=1...8",
                           "batch=8:2",
                           "batch=1..8:",
                           "batch=1..8:0",
                           "batch=1,",
                           "batch=,1",
                           "batch=1,,2",
                           "batch=1,x",
                           "batch=1,0",
                           "batch=1,2..3",
                           "batch=3x",
                           "batch=99999999999999999999"})
    EXPECT_FALSE(parseDimBinding(text)) << text;
}

TEST(ModelFlags, ShapeIsAListOfExtents) {
  auto shape = parseInputShape("x=1x3x224x224");
  ASSERT_TRUE(shape);
  EXPECT_EQ(shape->name, "x");
  EXPECT_EQ(shape->extents, (std::vector<int64_t>{1, 3, 224, 224}));
  auto scalar = parseInputShape("x=");
  ASSERT_TRUE(scalar);
  EXPECT_TRUE(scalar->extents.empty());
}

TEST(ModelFlags, MalformedShape) {
  for (const char *text : {"", "x", "=1x3", "x=1x", "x=x1", "x=1xx3", "x=1x-3"})
    EXPECT_FALSE(parseInputShape(text)) << text;
}

TEST(ModelFlags, LengthIsANumberOrNone) {
  auto length = parseInputLength("parts=3");
  ASSERT_TRUE(length);
  EXPECT_EQ(length->name, "parts");
  EXPECT_EQ(length->count, 3);
  auto absent = parseInputLength("mask=none");
  ASSERT_TRUE(absent);
  EXPECT_FALSE(absent->count);
  for (const char *text : {"", "parts", "=3", "parts=", "parts=-1", "parts=x"})
    EXPECT_FALSE(parseInputLength(text)) << text;
}

TEST(ModelFlags, ValuesAndStates) {
  auto value = parseInputValue("rate=16000");
  ASSERT_TRUE(value);
  EXPECT_EQ(value->text, "16000");
  EXPECT_EQ(parseInputValue("rate=")->text, ""); // no elements
  EXPECT_FALSE(parseInputValue("rate"));
  auto state = parseStatePair("next=previous");
  ASSERT_TRUE(state);
  EXPECT_EQ(state->output, "next");
  EXPECT_EQ(state->input, "previous");
  EXPECT_FALSE(parseStatePair("next"));
}
