// What a budget costs, of a package's decisions and of a plan.

#include "tools/cli/MemoryUse.h"

#include "gtest/gtest.h"

using namespace tcc;
using tools::describeMemory, tools::readRecomputes;

namespace {

constexpr char kDecisions[] = R"([
  {"pass": "recompute-values", "decision": "possible", "entry": "step",
   "reason": "any words", "numbers": {"bytes": 64, "microseconds": 1.5}},
  {"pass": "plan-memory", "decision": "possible", "entry": "step"},
  {"pass": "recompute-values", "decision": "fitted", "entry": "step",
   "reason": "any words", "numbers":
   {"bytes": 64, "microseconds": 1.5, "microseconds_unbounded": 1.25}},
  {"pass": "recompute-values", "decision": "recomputed", "entry": "step",
   "node": "/relu", "reason": "the whole kernel",
   "numbers": {"bytes": 16, "microseconds": 0.5}},
  {"pass": "recompute-values", "decision": "possible", "entry": "eval",
   "reason": "any words", "numbers": {"bytes": 32, "microseconds": 1}}])";

} // namespace

TEST(MemoryUseTest, ReadsTheEntryPointOfADecision) {
  std::vector<EntryRecompute> entries = readRecomputes(kDecisions);
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].entry, "step");
  ASSERT_EQ(entries[0].possible.size(), 1u);
  ASSERT_TRUE(entries[0].chosen);
  EXPECT_EQ(entries[0].chosen->bytes, 64);
  EXPECT_EQ(entries[0].keptMicroseconds, 1.25);
  ASSERT_EQ(entries[0].recomputed.size(), 1u);
  EXPECT_EQ(entries[0].recomputed[0].node, "/relu");
  EXPECT_EQ(entries[1].entry, "eval");
  EXPECT_FALSE(entries[1].chosen);
}

TEST(MemoryUseTest, ReadsAnyDecisions) {
  EXPECT_TRUE(readRecomputes("").empty());
  EXPECT_TRUE(readRecomputes("{}").empty());
  EXPECT_TRUE(readRecomputes("[1, {\"pass\": 2}]").empty());
  std::vector<EntryRecompute> entries = readRecomputes(
      R"([{"pass": "recompute-values", "decision": "possible",
           "numbers": {"bytes": -1e300, "microseconds": "2"}}])");
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0].entry, "");
  EXPECT_EQ(entries[0].possible[0].bytes, 0);
}

TEST(MemoryUseTest, SumsWhatIsComputedAgain) {
  EntryRecompute entry;
  entry.entry = "step";
  entry.possible = {{64, 1}, {32, 2}};
  entry.chosen = {32, 2};
  entry.keptMicroseconds = 1;
  entry.recomputed = {{"/a", "the whole kernel", 8, 0.25},
                      {"/b", "the whole kernel", 8, 1},
                      {"/a", "the whole kernel", 8, 0.25}};
  auto memory = describeMemory({}, {entry});
  EXPECT_EQ(memory["curve"].size(), 2u);
  EXPECT_EQ(memory["curve"][1]["entry"], "step");
  EXPECT_EQ(memory["fitted"][0]["microseconds_unbounded"], 1);
  ASSERT_EQ(memory["recomputed"].size(), 2u);
  EXPECT_EQ(memory["recomputed"][0]["node"], "/b");
  EXPECT_EQ(memory["recomputed"][1]["times"], 2);
  EXPECT_EQ(tools::printMemory(memory),
            "step computes again for 1 us more than the 1 us that it is "
            "predicted to take with all values kept\n");
}
