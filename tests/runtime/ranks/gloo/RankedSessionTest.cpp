// Sessions of several ranks, as threads of one process.

#include "runtime/train/Checkpoint.h"
#include "runtime/train/Session.h"
#include "tests/runtime/ranks/Ranks.h"
#include "tests/runtime/train/LineProgram.h"

#include <array>
#include <atomic>
#include <bit>
#include <map>
#include <mutex>
#include <numeric>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::tests;
using format::StepField;

namespace {

class RankedSessionTest : public testing::Test {
protected:
  RankedSessionTest() { rankedLineProgram().write(path); }

  std::unique_ptr<TrainingSession> open(Communicator *ranks) {
    return unwrap(tryOpen(path, ranks));
  }
  static Result<std::unique_ptr<TrainingSession>> tryOpen(const std::string &at,
                                                          Communicator *ranks) {
    return TrainingSession::create(loadExecutable(at),
                                   {.threads = 1, .communicator = ranks});
  }

  /// The batch of that number.
  struct Batch {
    float x[kLineBatch], y[kLineBatch];
    int64_t shape[1] = {kLineBatch};
    TensorView views[2] = {{x, DType::f32, shape}, {y, DType::f32, shape}};

    explicit Batch(int64_t number) {
      for (int i = 0; i < kLineBatch; ++i) {
        x[i] = static_cast<float>((number * kLineBatch + i) % 7) - 3;
        y[i] = 3 * x[i];
      }
    }
  };

  static Status accumulate(TrainingSession &session) {
    return session.accumulate(Batch(session.batchNumber()).views);
  }
  static Status step(TrainingSession &session) {
    return session.step(Batch(session.batchNumber()).views);
  }
  static float parameter(const TrainingSession &session) {
    float value;
    EXPECT_THAT(session.variables().read(
                    0, std::as_writable_bytes(std::span(&value, 1))),
                succeeds());
    return value;
  }

  TemporaryFolder folder;
  std::string path = folder / "line.tcc";
};

} // namespace

/// Of the batches of all ranks: what one rank learns of them.
TEST_F(RankedSessionTest, LearnsFromTheBatchesOfAllRanks) {
  auto alone = open(nullptr);
  std::vector<float> expected;
  std::vector<double> losses;
  for (int update = 0; update < 5; ++update) {
    for (int batch = 0; batch < 4; ++batch)
      ASSERT_THAT(accumulate(*alone), succeeds());
    ASSERT_THAT(alone->apply(), succeeds());
    expected.push_back(parameter(*alone));
    losses.push_back(alone->metrics().loss);
  }
  float found[2] = {};
  runRanks(2, [&](Communicator &ranks) {
    auto session = open(&ranks);
    EXPECT_EQ(session->read(StepField::rank), ranks.rank());
    EXPECT_EQ(session->read(StepField::world), 2);
    for (int update = 0; update < 5; ++update) {
      int64_t first = 4 * update + ranks.rank();
      EXPECT_EQ(session->batchNumber(), first);
      EXPECT_EQ(session->nextBatchNumbers(3),
                (std::vector<int64_t>{first + 2, first + 4, first + 6}));
      ASSERT_THAT(accumulate(*session), succeeds());
      EXPECT_EQ(session->batchNumber(), 4 * update + 2 + ranks.rank());
      // One way, and the other.
      if (update % 2) {
        ASSERT_THAT(step(*session), succeeds());
      } else {
        ASSERT_THAT(accumulate(*session), succeeds());
        ASSERT_THAT(session->apply(), succeeds());
      }
      EXPECT_NEAR(parameter(*session), expected[update], 1e-5);
      EXPECT_NEAR(session->metrics().loss, losses[update], 1e-4);
      EXPECT_EQ(session->batchCount(), 4 * (update + 1));
    }
    found[ranks.rank()] = parameter(*session);
  });
  EXPECT_EQ(found[0], found[1]) << "the same bits";
}

/// One bit of a parameter, or a count of the step, is enough; what a rank has
/// of its own is none.
TEST_F(RankedSessionTest, NamesRanksThatDiffer) {
  runRanks(3, [&](Communicator &ranks) {
    auto session = open(&ranks);
    ASSERT_THAT(step(*session), succeeds());
    ASSERT_THAT(accumulate(*session), succeeds());
    EXPECT_THAT(session->compareVariables(), succeeds());
    uint32_t bits = std::bit_cast<uint32_t>(parameter(*session));
    auto write = [&](uint32_t value) {
      EXPECT_THAT(session->write(0, std::as_bytes(std::span(&value, 1))),
                  succeeds());
    };
    if (ranks.rank() > 0)
      write(bits ^ 1);
    std::string name = session->variables().describe(0).name()->str();
    EXPECT_THAT(session->compareVariables(),
                failsWith(Code::Peer, "after update 1 variable '" + name +
                                          "' has other bits at rank 1, 2 than "
                                          "at rank 0"));
    write(bits);
    EXPECT_THAT(session->compareVariables(), succeeds());
    int64_t count = 7;
    if (ranks.rank() == 2)
      EXPECT_THAT(
          session->write(*session->variables().find(StepField::iteration),
                         std::as_bytes(std::span(&count, 1))),
          succeeds());
    EXPECT_THAT(session->compareVariables(),
                failsWith(Code::Peer, "at rank 2"));
  });
}

/// A run whose number of ranks changes, 12 batches an update: each batch is
/// taken once, and the updates are those of one rank.
TEST_F(RankedSessionTest, TakesEachBatchOnceByAnyNumberOfRanks) {
  constexpr int kBatches = 12, kWorlds[] = {1, 2, 4, 3, 1};
  auto alone = open(nullptr);
  std::string saved;
  std::mutex mutex;
  std::map<int64_t, int> taken;
  auto train = [&](Communicator *ranks, const std::string &before) {
    auto session = open(ranks);
    if (!before.empty() && session->rank() == 0) {
      EXPECT_THAT(restoreCheckpoint(*session, before), succeeds());
    }
    ASSERT_THAT(session->shareVariables(), succeeds());
    for (int i = 0; i < kBatches / session->rankCount(); ++i) {
      std::unique_lock lock(mutex);
      ++taken[session->batchNumber()];
      lock.unlock();
      ASSERT_THAT(accumulate(*session), succeeds());
    }
    ASSERT_THAT(session->apply(), succeeds());
    EXPECT_NEAR(parameter(*session), parameter(*alone), 1e-5);
    if (session->rank() == 0)
      saved = unwrap(saveCheckpoint(*session, folder / "run"));
  };
  for (int world : kWorlds) {
    for (int i = 0; i < kBatches; ++i)
      ASSERT_THAT(accumulate(*alone), succeeds());
    ASSERT_THAT(alone->apply(), succeeds());
    std::string before = saved;
    if (world == 1)
      train(nullptr, before);
    else
      runRanks(world, [&](Communicator &ranks) { train(&ranks, before); });
  }
  EXPECT_EQ(taken.size(), kBatches * std::size(kWorlds));
  EXPECT_EQ(taken.rbegin()->first, kBatches * std::size(kWorlds) - 1);
  for (auto [number, times] : taken)
    EXPECT_EQ(times, 1) << "batch " << number;
}

/// Without ranks it is the package that it is without their entry points.
TEST_F(RankedSessionTest, OfOneRankRunsWhatOneRankRuns) {
  std::string plain = folder / "plain.tcc";
  lineProgram().write(plain);
  auto session = open(nullptr), other = unwrap(tryOpen(plain, nullptr));
  EXPECT_EQ(session->stream().laneCount(), 1u);
  EXPECT_EQ(session->planned().arena, other->planned().arena);
  for (int i = 0; i < 3; ++i) {
    ASSERT_THAT(step(*session), succeeds());
    ASSERT_THAT(step(*other), succeeds());
  }
  EXPECT_EQ(parameter(*session), parameter(*other));
  EXPECT_THAT(session->start(EntryKind::reduce_apply, {}),
              failsWith(Code::Usage, "'reduce_apply' is no step"));
}

TEST_F(RankedSessionTest, SharesWhatTheFirstRankRestored) {
  std::string saved;
  {
    auto session = open(nullptr);
    for (int i = 0; i < 4; ++i)
      ASSERT_THAT(step(*session), succeeds());
    saved = unwrap(saveCheckpoint(*session, folder / "run"));
  }
  std::string again;
  runRanks(2, [&](Communicator &ranks) {
    auto session = open(&ranks);
    if (ranks.rank() == 0) {
      EXPECT_THAT(restoreCheckpoint(*session, saved), succeeds());
    }
    ASSERT_THAT(session->shareVariables(), succeeds());
    EXPECT_EQ(session->stepCount(), 4);
    EXPECT_EQ(session->batchNumber(), 4 + ranks.rank());
    ASSERT_THAT(step(*session), succeeds());
    EXPECT_EQ(session->batchNumber(), 6 + ranks.rank());
    if (ranks.rank() == 0)
      again = unwrap(saveCheckpoint(*session, folder / "run"));
  });
  auto session = open(nullptr);
  ASSERT_THAT(restoreCheckpoint(*session, again), succeeds());
  EXPECT_EQ(session->batchNumber(), 6) << "of one rank again";
  ASSERT_THAT(step(*session), succeeds());
  EXPECT_EQ(session->batchNumber(), 7);
}

/// Of parts, too, each of which lies in a file of its own here.
TEST_F(RankedSessionTest, RestoresPartsOfSeveralFiles) {
  dividedLineProgram().write(path);
  std::string saved;
  auto slotOf = [](TrainingSession &session) {
    std::array<float, 4> values;
    EXPECT_THAT(
        session.variables().read(session.variables().size() - 1,
                                 std::as_writable_bytes(std::span(values))),
        succeeds());
    return values;
  };
  auto valuesOf = [](int rank) {
    std::array<float, 4> values;
    std::iota(values.begin(), values.end(), 10.0f * static_cast<float>(rank));
    return values;
  };
  runRanks(2, [&](Communicator &ranks) {
    auto session = open(&ranks);
    auto values = valuesOf(ranks.rank());
    ASSERT_THAT(session->variables().write(session->variables().size() - 1,
                                           std::as_bytes(std::span(values))),
                succeeds());
    std::string path = unwrap(saveCheckpoint(*session, folder / "run", 1));
    if (ranks.rank() == 0)
      saved = path;
    auto other = open(&ranks);
    ASSERT_THAT(restoreCheckpoint(*other, path), succeeds());
    EXPECT_EQ(slotOf(*other), values);
  });
  unwrap(verifyCheckpoint(saved));
  std::vector<char> text = readBytes(saved + "/model.safetensors.index.json");
  auto places = nlohmann::json::parse(text.begin(), text.end())["weight_map"];
  EXPECT_EQ(places["sum/w[0:4]"], "rank-0.safetensors");
  EXPECT_EQ(places["sum/b"], "rank-1-00001-of-00002.safetensors");
  EXPECT_EQ(places["sum/w[4:5]"], "rank-1-00002-of-00002.safetensors");
}

TEST_F(RankedSessionTest, AddsUpEvaluations) {
  Evaluation all;
  auto alone = open(nullptr);
  for (int batch = 0; batch < 3; ++batch)
    ASSERT_THAT(alone->evaluate(Batch(batch).views, all), succeeds());
  ASSERT_THAT(alone->addUp(all), succeeds());
  EXPECT_EQ(all.count, 12);
  runRanks(2, [&](Communicator &ranks) {
    auto session = open(&ranks);
    Evaluation sum;
    for (int batch = ranks.rank(); batch < 3; batch += ranks.size())
      ASSERT_THAT(session->evaluate(Batch(batch).views, sum), succeeds());
    ASSERT_THAT(session->addUp(sum), succeeds());
    EXPECT_EQ(sum.count, all.count);
    EXPECT_DOUBLE_EQ(sum.loss, all.loss);
  });
}

/// One buffer is of all variables that follow each other.
TEST_F(RankedSessionTest, AddsUpABucketOfVariables) {
  ProgramBuilder bucket = rankedLineProgram();
  uint32_t first = bucket.variable("gradient/u", DType::f32, {1},
                                   format::VariableKind::gradient);
  bucket.variable("gradient/v", DType::f32, {3},
                  format::VariableKind::gradient);
  bucket.inEntry(EntryKind::reduce_apply);
  format::AllReduceT table;
  table.from = table.to =
      bucket.buffer(format::StorageClass::variable, first, 64 + 12);
  table.count = constant((64 + 12) / 4);
  bucket.command(std::move(table));
  bucket.write(path);
  runRanks(2, [&](Communicator &ranks) {
    auto session = open(&ranks);
    auto own = static_cast<float>(ranks.rank() + 1);
    float values[] = {own, 10 * own, 20 * own};
    auto bytes = std::as_writable_bytes(std::span(values));
    ASSERT_THAT(session->write(first, bytes.first(4)), succeeds());
    ASSERT_THAT(session->write(first + 1, bytes), succeeds());
    ASSERT_THAT(accumulate(*session), succeeds());
    ASSERT_THAT(session->apply(), succeeds());
    ASSERT_THAT(session->variables().read(first + 1, bytes), succeeds());
    EXPECT_THAT(values, testing::ElementsAre(3, 30, 60));
    ASSERT_THAT(session->variables().read(first, bytes.first(4)), succeeds());
    EXPECT_EQ(values[0], 3);
  });
}

/// All ranks say it, at once.
TEST_F(RankedSessionTest, RefusesRanksThatDiffer) {
  std::string other = folder / "other.tcc";
  ProgramBuilder changed = rankedLineProgram();
  changed.tables.producer = "another compiler";
  changed.write(other);
  runRanks(3, [&](Communicator &ranks) {
    EXPECT_THAT(
        tryOpen(ranks.rank() == 2 ? other : path, &ranks).takeStatus(),
        failsWith(Code::Usage, "rank 2 has another package than rank 0"));
    auto session = open(&ranks);
    if (ranks.rank() == 1) {
      EXPECT_THAT(session->settings().set("lr", "0.5"), succeeds());
    }
    EXPECT_THAT(
        step(*session),
        failsWith(Code::Usage, "rank 1 has other settings than rank 0"));
  });
}

TEST_F(RankedSessionTest, RefusesPackagesOfOneRank) {
  std::string plain = folder / "plain.tcc";
  lineProgram().write(plain);
  runRanks(2, [&](Communicator &ranks) {
    EXPECT_THAT(
        tryOpen(plain, &ranks).takeStatus(),
        failsWith(Code::Usage,
                  "plain.tcc' was compiled for one rank: parallel.data = 1"));
  });
}

/// Its own lane notices, and the step fails with it.
TEST_F(RankedSessionTest, FailsWhereARankLeaves) {
  runRanks(2, [&](Communicator &ranks) {
    auto session = open(&ranks);
    ASSERT_THAT(step(*session), succeeds());
    if (ranks.rank() == 1)
      return;
    for (int i = 0; i < 2; ++i) {
      Status status = step(*session);
      EXPECT_THAT(status, failsWith(Code::Peer, "rank 1 (host "));
      EXPECT_THAT(status, failsWith(Code::Peer, "heard of at update 1 after"));
      EXPECT_THAT(status, failsWith(Code::Peer, ") at update 2 in all-reduce"));
      EXPECT_THAT(status, failsWith(Code::Peer, " of gradient/w"));
    }
  });
}

/// A call has the name of what it moves.
TEST_F(RankedSessionTest, RecordsWhatItsStepsMove) {
  runRanks(2, [&](Communicator &ranks) {
    auto session = open(&ranks);
    ASSERT_THAT(step(*session), succeeds());
    ASSERT_THAT(step(*session), succeeds());
    std::vector<std::string> before, inSteps;
    for (const CollectiveCall &call : ranks.collectives())
      (call.step == 0 ? before : inSteps)
          .push_back(concat(call.step, " ", nameOf(call.kind), " ", call.of));
    EXPECT_THAT(before, testing::Contains("0 broadcast w"));
    EXPECT_THAT(inSteps, testing::ElementsAre(
                             "1 all-reduce gradient/w", "1 all-reduce ",
                             "2 all-reduce gradient/w", "2 all-reduce "));
    ASSERT_THAT(ranks.close(), succeeds());
  });
}

/// A loss that is not finite stops all ranks, whosever it was.
TEST_F(RankedSessionTest, StopsAllRanksAtAFault) {
  runRanks(2, [&](Communicator &ranks) {
    auto session = open(&ranks);
    Batch batch(ranks.rank());
    if (ranks.rank() == 1)
      batch.y[0] = NAN;
    float before = parameter(*session);
    EXPECT_THAT(session->step(batch.views),
                failsWith(Code::Numerics, "not finite"));
    EXPECT_EQ(parameter(*session), before);
    session->clearFault();
    EXPECT_THAT(step(*session), succeeds());
    EXPECT_NE(parameter(*session), before);
  });
}

/// The places of a rank are the leaves of a subtree; each batch of an update is
/// one of them. One rank runs what several do.
TEST_F(RankedSessionTest, TakesTheLeavesOfATree) {
  exactLineProgram(8).write(path);
  const std::vector<int64_t> expected[] = {
      {0, 4, 2, 6, 1, 5, 3, 7}, {0, 4, 2, 6}, {0, 4}};
  std::vector<float> learned;
  auto train = [&](Communicator *ranks, const std::vector<int64_t> &places) {
    auto session = open(ranks);
    for (int64_t first : {0, 8}) {
      for (int64_t place : places) {
        EXPECT_EQ(session->batchNumber(), first + place + session->rank());
        std::vector<int64_t> next = session->nextBatchNumbers(1);
        ASSERT_THAT(accumulate(*session), succeeds());
        EXPECT_EQ(next, std::vector{session->batchNumber()});
      }
      EXPECT_EQ(session->batchNumber(), first + 8 + session->rank());
      EXPECT_EQ(session->nextBatchNumbers(1),
                std::vector{first + 8 + places[1] + session->rank()});
      ASSERT_THAT(session->apply(), succeeds());
      EXPECT_EQ(session->batchCount(), first + 8);
    }
    if (session->rank() == 0)
      learned.push_back(parameter(*session));
  };
  train(nullptr, expected[0]);
  runRanks(2, [&](Communicator &ranks) { train(&ranks, expected[1]); });
  runRanks(4, [&](Communicator &ranks) { train(&ranks, expected[2]); });
  EXPECT_NEAR(learned[1], learned[0], 1e-5);
  EXPECT_NEAR(learned[2], learned[0], 1e-5);
}

TEST_F(RankedSessionTest, RefusesAnUpdateThatIsNoTree) {
  exactLineProgram(4).write(path);
  auto session = open(nullptr);
  EXPECT_THAT(step(*session),
              failsWith(Code::Usage,
                        "an update accumulates 4 batches of each of 1 ranks "
                        "and then applies them: parallel.exact = 4; 0 were "
                        "accumulated"));
  for (int i = 0; i < 3; ++i)
    ASSERT_THAT(accumulate(*session), succeeds());
  EXPECT_THAT(session->apply(), failsWith(Code::Usage, "3 were accumulated"));
  EXPECT_THAT(saveCheckpoint(*session, folder / "run").takeStatus(),
              failsWith(Code::Usage, "this one comes after 3 batches of one"));
  ASSERT_THAT(accumulate(*session), succeeds());
  EXPECT_THAT(accumulate(*session), failsWith(Code::Usage, "4 were "));
  ASSERT_THAT(session->apply(), succeeds());
  EXPECT_TRUE(saveCheckpoint(*session, folder / "run").ok());
  runRanks(3, [&](Communicator &ranks) {
    EXPECT_THAT(tryOpen(path, &ranks).takeStatus(),
                failsWith(Code::Usage, "parallel.exact is 4 batches, which 3 "
                                       "ranks cannot share; these numbers of "
                                       "ranks can: 1, 2, 4"));
  });
}

/// What a fault kept from being counted is no part of the update.
TEST_F(RankedSessionTest, BeginsATreeAgainAfterAFault) {
  exactLineProgram(2).write(path);
  auto session = open(nullptr);
  Batch bad(0);
  bad.y[0] = NAN;
  ASSERT_THAT(session->accumulate(bad.views), succeeds());
  ASSERT_THAT(accumulate(*session), succeeds());
  EXPECT_THAT(session->apply(), failsWith(Code::Numerics, "not finite"));
  session->clearFault();
  EXPECT_EQ(session->batchNumber(), session->batchCount());
  for (int i = 0; i < 2; ++i)
    ASSERT_THAT(accumulate(*session), succeeds());
  EXPECT_THAT(session->apply(), succeeds());
}
