#include "runtime/ranks/Cores.h"

#include "runtime/base/ThreadPool.h"
#include "tests/runtime/Fixture.h"

using namespace tcc::runtime;
using namespace tcc::tests;

static Cores onCores(int first, int count, int machine = 0) {
  Cores cores;
  cores.machine.bytes[0] = uint8_t(machine);
  for (int core = first; core < first + count; ++core)
    CPU_SET(core, &cores.mask);
  return cores;
}

static std::vector<int> countAll(const std::vector<Cores> &all) {
  std::vector<int> counts(all.size());
  for (size_t rank = 0; rank < all.size(); ++rank)
    counts[rank] = countThreads(all, rank);
  return counts;
}

using testing::ElementsAre;

TEST(Cores, AreSharedByTheRanksOfAMachine) {
  EXPECT_THAT(countAll({onCores(0, 64)}), ElementsAre(64));
  EXPECT_THAT(countAll({onCores(0, 8), onCores(0, 8), onCores(0, 8)}),
              ElementsAre(2, 2, 2));
  EXPECT_THAT(countAll({onCores(0, 3), onCores(0, 3), onCores(0, 3)}),
              ElementsAre(1, 1, 1));
  EXPECT_THAT(countAll({onCores(0, 2), onCores(0, 2), onCores(0, 2)}),
              ElementsAre(1, 1, 1));
  EXPECT_THAT(countAll({onCores(0, 8), onCores(0, 8, 1), onCores(0, 8, 1)}),
              ElementsAre(8, 4, 4));
}

/// A launcher binds ranks to cores or to sockets.
TEST(Cores, OfItsOwnARankHasWhole) {
  EXPECT_THAT(countAll({onCores(0, 4), onCores(4, 4)}), ElementsAre(4, 4));
  EXPECT_THAT(countAll({onCores(0, 1), onCores(1, 1)}), ElementsAre(1, 1));
  EXPECT_THAT(countAll({onCores(0, 16), onCores(0, 16), onCores(16, 16),
                        onCores(16, 16)}),
              ElementsAre(8, 8, 8, 8));
  // Half of four cores, and two alone.
  EXPECT_THAT(countAll({onCores(0, 4), onCores(0, 6)}), ElementsAre(2, 4));
}

/// A quota of so many CPUs of a group.
static Cores::Quota quotaOf(uint8_t group, int64_t cpus) {
  Cores::Quota quota = {.cpus = cpus};
  quota.group.bytes[0] = group;
  return quota;
}

/// It is that of a group: of a container, or of all ranks.
TEST(Cores, OfAQuotaEachRankHasItsPart) {
  Cores cores = onCores(0, 64);
  cores.quotas[0] = quotaOf(1, 6);
  EXPECT_THAT(countAll({cores}), ElementsAre(6));
  EXPECT_THAT(countAll({cores, cores}), ElementsAre(3, 3));
  Cores other = cores;
  other.quotas[0] = quotaOf(9, 6);
  EXPECT_THAT(countAll({cores, other}), ElementsAre(6, 6));
  cores.quotas[0].cpus = 100;
  EXPECT_THAT(countAll({cores, cores}), ElementsAre(32, 32));
}

/// Groups within one that has a quota, as tasks of a job, share that.
TEST(Cores, OfAQuotaAroundSeveralGroupsEachRankHasItsPart) {
  Cores first = onCores(0, 64), second = onCores(0, 64), apart = onCores(0, 64);
  first.quotas = {quotaOf(1, 4), quotaOf(7, 6)};
  second.quotas = {quotaOf(7, 6), quotaOf(2, 40)};
  apart.quotas[0] = quotaOf(3, 5);
  EXPECT_THAT(countAll({first, second, apart}), ElementsAre(3, 3, 5));
  EXPECT_THAT(countAll({first, first, second, apart}), ElementsAre(2, 2, 2, 5));
  first.quotas[0].cpus = 1;
  EXPECT_THAT(countAll({first, second, apart}), ElementsAre(1, 3, 5));
}

TEST(Cores, OfThisProcessAreWhatOneRankTakes) {
  Cores own = readCores(), again = readCores();
  EXPECT_EQ(countThreads(std::span(&own, 1), 0), defaultThreadCount());
  EXPECT_EQ(own.machine, again.machine);
  EXPECT_EQ(own.quotas[0].group, again.quotas[0].group);
}
