// Records of event files: sums, framing, and messages as a strict reader finds
// them.

#include "tools/tcc-run/Events.h"
#include "tests/tools/tcc-run/EventFile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace tcc::tests;
using namespace tcc::tools;

/// Of RFC 3720, B.4, and of the catalogue of parametrised CRC algorithms.
TEST(EventsTest, SumsAsIscsiDoes) {
  std::string rising, falling;
  for (int i = 0; i < 32; ++i) {
    rising += static_cast<char>(i);
    falling += static_cast<char>(31 - i);
  }
  EXPECT_EQ(getCrc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(getCrc32c(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(getCrc32c(rising), 0x46dd794eu);
  EXPECT_EQ(getCrc32c(falling), 0x113fdb5cu);
  EXPECT_EQ(getCrc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(getCrc32c(""), 0u);
}

/// The bytes of TensorBoard's own writer.
TEST(EventsTest, FramesAsTensorBoardDoes) {
  std::string record = makeVersionRecord(1.5);
  const unsigned char expected[] = {
      0x18, 0,    0,    0,    0,    0,    0,    0,    0xa3, 0x7f,
      0x4b, 0x22, 0x09, 0,    0,    0,    0,    0,    0,    0xf8,
      0x3f, 0x1a, 0x0d, 0x62, 0x72, 0x61, 0x69, 0x6e, 0x2e, 0x45,
      0x76, 0x65, 0x6e, 0x74, 0x3a, 0x32, 0x2a, 0x28, 0x64, 0x6c};
  EXPECT_EQ(record, std::string(std::begin(expected), std::end(expected)));
  EventFile file = readEvents(record + frame(""));
  ASSERT_EQ(file.events.size(), 2u);
  EXPECT_EQ(file.events[0].version, "brain.Event:2");
  EXPECT_EQ(file.events[0].time, 1.5);
}

TEST(EventsTest, SaysWhatAStepHad) {
  Summary summary;
  summary.addNumber("train/loss", 0.25);
  summary.addNumber("none", NAN);
  summary.addNumber("much", 1e300);
  summary.addText("run/recipe", "lr = 0.1\n\xff|");
  std::vector<Bucket> buckets = {{-1, 0, 3}, {0, 1, 4}};
  summary.addHistogram("parameter/w\xc3", buckets);
  summary.addHistogram("empty", {});
  std::string record = makeRecord(2, 7, summary);
  EventFile file = readEvents(record);
  ASSERT_EQ(file.events.size(), 1u);
  EXPECT_EQ(file.size, record.size());
  Event &event = file.events[0];
  EXPECT_EQ(event.step, 7);
  EXPECT_EQ(event.time, 2);
  EXPECT_FALSE(event.isStart);
  EXPECT_EQ(event.numbers["train/loss"], 0.25);
  EXPECT_TRUE(std::isnan(event.numbers["none"]));
  EXPECT_EQ(event.numbers["much"], INFINITY);
  EXPECT_EQ(event.texts["run/recipe"], "lr = 0.1\n\xef\xbf\xbd|");
  EXPECT_THAT(event.histograms["parameter/w\xef\xbf\xbd"],
              testing::ElementsAre(-1, 0, 3, 0, 1, 4));
  EXPECT_THAT(event.histograms["empty"], testing::IsEmpty());
}

TEST(EventsTest, MakesLaterStepsVoid) {
  Event event = readEvents(makeStartRecord(2, 12)).events.at(0);
  EXPECT_TRUE(event.isStart);
  EXPECT_EQ(event.step, 12);
}

/// What a reader does with a file that is cut anywhere.
TEST(EventsTest, IsReadUpToATornRecord) {
  std::string whole = makeVersionRecord(1), record = makeStartRecord(2, 3);
  for (size_t size = 0; size < record.size(); ++size) {
    EventFile file = readEvents(whole + record.substr(0, size));
    EXPECT_EQ(file.events.size(), 1u);
    EXPECT_EQ(file.size, whole.size());
  }
  for (size_t at = 0; at < record.size(); ++at) {
    std::string damaged = record;
    damaged[at] ^= 1;
    EXPECT_THROW(readEvents(damaged), std::exception) << at;
  }
}
