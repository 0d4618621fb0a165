// Ranks that an embedder begins, by the C++ wrapper of the C API.

#include "tcc/runtime.hpp"
#include "tests/runtime/ranks/Ranks.h"
#include "tests/runtime/train/LineProgram.h"

#include <atomic>
#include <thread>

using namespace tcc::tests;

namespace {

class RankedApiTest : public testing::Test {
protected:
  RankedApiTest() { rankedLineProgram().write(path); }

  TemporaryFolder folder;
  std::string path = folder / "line.tcc";
};

/// Batches of the line y = 3 x.
struct Batch {
  float x[kLineBatch], y[kLineBatch];

  void read(int64_t number) {
    for (int i = 0; i < kLineBatch; ++i) {
      x[i] = static_cast<float>((number * kLineBatch + i) % 7) - 3;
      y[i] = 3 * x[i];
    }
  }
};

} // namespace

TEST_F(RankedApiTest, RanksTrainTogether) {
  usePlugins();
  std::string place = "127.0.0.1:" + std::to_string(findFreePort());
  constexpr int kRanks = 2;
  float learned[kRanks] = {};
  tcc::Evaluation sums[kRanks] = {};
  auto train = [&](int rank) {
    tcc::Package package = tcc::Package::open(path);
    tcc::Program program(package);
    tcc::TrainSession session(program, {.threads = 1},
                              {kRanks, rank, place.c_str()});
    EXPECT_EQ(session.rank(), rank);
    EXPECT_EQ(session.rankCount(), kRanks);
    Batch batch;
    session.bind("x", batch.x);
    session.bind("y", batch.y);
    for (int64_t step = 0; step < 5; ++step) {
      EXPECT_EQ(session.batchNumber(), step * kRanks + rank);
      batch.read(session.batchNumber());
      session.step();
    }
    if (rank == 0)
      session.evaluate(sums[rank]);
    session.addUp(sums[rank]);
    tcc_session_read(session.get(), 0, &learned[rank], sizeof(float));
    session.close();
  };
  std::thread other(train, 1);
  train(0);
  other.join();
  EXPECT_NE(learned[0], 0.5f);
  EXPECT_EQ(learned[0], learned[1]);
  EXPECT_EQ(sums[0].count, double(kLineBatch));
  EXPECT_EQ(sums[1].loss, sums[0].loss);
}

/// Also while another thread is in a step, as that of a rank that hangs.
TEST_F(RankedApiTest, TellsTheCollectivesOfARank) {
  usePlugins();
  std::string place = "127.0.0.1:" + std::to_string(findFreePort());
  auto train = [&](int rank) {
    tcc::Package package = tcc::Package::open(path);
    tcc::Program program(package);
    tcc::TrainSession session(program, {.threads = 1},
                              {2, rank, place.c_str()});
    EXPECT_EQ(session.ranksNote(), "");
    Batch batch;
    session.bind("x", batch.x);
    session.bind("y", batch.y);
    std::atomic<bool> isDone = false;
    std::thread looking([&] {
      while (!isDone)
        EXPECT_LE(session.collectives().size(), size_t(TCC_COLLECTIVES_KEPT));
    });
    constexpr int64_t kSteps = 70;
    for (int64_t step = 0; step < kSteps; ++step) {
      batch.read(session.batchNumber());
      session.step();
    }
    isDone = true;
    looking.join();
    std::vector<tcc::Collective> calls = session.collectives();
    ASSERT_EQ(calls.size(), size_t(TCC_COLLECTIVES_KEPT));
    for (const tcc::Collective &call : calls) {
      EXPECT_EQ(call.number, calls[0].number + (&call - calls.data()));
      EXPECT_LE(call.begin_ns, call.end_ns);
    }
    const tcc::Collective &last = calls.back();
    EXPECT_EQ(last.step, kSteps);
    EXPECT_EQ(last.kind, TCC_ALL_REDUCE);
    EXPECT_EQ(last.dtype, TCC_F32);
    EXPECT_GT(last.count, 0u);
    tcc::Collective newest = {};
    EXPECT_EQ(tcc_session_collectives(session.get(), &newest, 1), 1u);
    EXPECT_EQ(newest.number, last.number);
    EXPECT_STREQ(newest.of, last.of);
    session.close();
  };
  std::thread other(train, 1);
  train(0);
  other.join();
}

TEST_F(RankedApiTest, OneRankIsAlone) {
  tcc::Package package = tcc::Package::open(path);
  tcc::Program program(package);
  tcc::TrainSession session(program, {}, tcc::RankOptions::launched());
  EXPECT_EQ(session.rank(), 0);
  EXPECT_EQ(session.rankCount(), 1);
  EXPECT_EQ(session.batchNumber(), 0);
  EXPECT_EQ(session.ranksNote(), "");
  EXPECT_TRUE(session.collectives().empty());
}

TEST_F(RankedApiTest, RefusesHalfARank) {
  tcc::Package package = tcc::Package::open(path);
  tcc::Program program(package);
  auto open = [&](const tcc::RankOptions &ranks) {
    tcc::TrainSession(program, {}, ranks);
  };
  EXPECT_THROW(open({.ranks = 2}), tcc::Error);
  EXPECT_THROW(open({.ranks = -2}), tcc::Error);
  EXPECT_THROW(open({2, 2, "127.0.0.1:9"}), tcc::Error);
  EXPECT_THROW(open({2, 0, "nowhere"}), tcc::Error);
}
