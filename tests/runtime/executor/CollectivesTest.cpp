// Collectives of programs: of one rank on all devices, and of several on the
// host, between ranks that are made up.

#include "runtime/executor/PlanEntry.h"
#include "runtime/ranks/Communicator.h"
#include "tests/runtime/Fixture.h"

#include <cstring>
#include <numeric>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::tests;
using format::SizeOp;
using format::StorageClass;

static std::vector<Expr> list(std::initializer_list<int64_t> values) {
  std::vector<Expr> exprs;
  for (int64_t value : values)
    exprs.push_back(constant(value));
  return exprs;
}

namespace {

/// Rank 1 of two, of which the other one has the same floats.
class TwinTransport final : public Transport {
public:
  std::string_view name() const override { return "twins"; }
  Status allReduce(const void *from, void *to, size_t count,
                   DType dtype) override {
    return perform(dtype, from, to, count, 2);
  }
  Status reduceScatter(const void *from, void *to, size_t count,
                       DType dtype) override {
    return perform(dtype, static_cast<const float *>(from) + count, to, count,
                   2);
  }
  Status allGather(const void *from, void *to, size_t count,
                   DType dtype) override {
    if (Status status = perform(dtype, from, to, count, 1); !status.ok())
      return status;
    return perform(dtype, from, static_cast<float *>(to) + count, count, 1);
  }
  Status broadcast(const void *from, void *to, size_t count, DType dtype,
                   int root) override {
    EXPECT_LT(root, 2);
    return perform(dtype, from, to, count, 1);
  }
  Status barrier() override { return Status(); }
  void setTimeout(std::chrono::milliseconds) override {}
  void abort() override {}

  int calls = 0;
  int failing = -1; ///< the call that fails; -1 for none

private:
  Status perform(DType dtype, const void *from, void *to, size_t count,
                 float factor) {
    EXPECT_EQ(dtype, DType::f32);
    if (calls++ == failing)
      return Status(Code::Peer, "the other rank is gone");
    for (size_t i = 0; i < count; ++i)
      static_cast<float *>(to)[i] =
          factor * static_cast<const float *>(from)[i];
    return Status();
  }
};

struct TwinRanks {
  TwinTransport *transport = new TwinTransport;
  Communicator ranks{std::unique_ptr<Transport>(transport), 1, 2};
};

} // namespace

/// Floats x[0..7] -> a = x + 1; on `lane`: b = collective(a), `count` floats;
/// y = b + 1, with 8 floats each.
template <typename Table>
static ProgramBuilder makeProgram(uint16_t lane, int64_t count,
                                  bool isInPlace = false) {
  ProgramBuilder builder;
  uint32_t x = builder.buffer(StorageClass::input,
                              builder.input("x", DType::f32, list({8})), 32);
  uint32_t y = builder.buffer(StorageClass::output,
                              builder.output("y", DType::f32, list({8})), 32);
  uint32_t a = builder.scratch(32), b = isInPlace ? a : builder.scratch(32);
  builder.launch("add_one", {x, a}, list({8, 8}), constant(1));
  if (!isInPlace)
    builder.copy(a, b, 32);
  if (lane > 0)
    builder.orderLanes(0, lane);
  builder.onLane(lane);
  Table table;
  table.from = a;
  table.to = b;
  table.count = constant(count);
  builder.command(std::move(table));
  if (lane > 0)
    builder.orderLanes(lane, 0);
  builder.onLane(0);
  builder.launch("add_one", {b, y}, list({8, 8}), constant(1));
  return builder;
}

namespace {

/// A context whose stream has ranks, or none.
struct RankedRun {
  std::shared_ptr<const Executable> executable;
  ThreadPool pool{1};
  std::unique_ptr<Context> context;
  std::vector<float> x = std::vector<float>(8);

  RankedRun(ProgramBuilder &builder, Communicator *ranks,
            const std::string &device = "cpu") {
    TemporaryFolder folder;
    if (device != "cpu")
      builder.compileForDevice();
    builder.write(folder / "m.tcc");
    ExecutableOptions loaded;
    loaded.device = device;
    executable = loadExecutable(folder / "m.tcc", loaded);
    const format::Entry *entry = executable->findEntry(EntryKind::main);
    ContextOptions options;
    options.runner = &pool;
    options.workspace =
        unwrap(Workspace::create(executable->device(), std::span(&entry, 1),
                                 {.runner = &pool, .communicator = ranks}));
    context = unwrap(Context::create(executable, options));
    std::iota(x.begin(), x.end(), 0.0f);
    EXPECT_THAT(bind(*context, 0, x, {8}), succeeds());
  }

  std::vector<float> values() {
    EXPECT_THAT(context->run(), succeeds());
    return floatsOf(context->output(0));
  }
};

} // namespace

TEST(Collectives, OfOneRankAreCopies) {
  std::vector<float> expected(8);
  std::iota(expected.begin(), expected.end(), 2.0f);
  auto check = [&](ProgramBuilder builder, const char *device) {
    RankedRun run(builder, nullptr, device);
    for (int i = 0; i < 3; ++i)
      EXPECT_EQ(run.values(), expected);
  };
  for (const char *device : {"cpu", "emulated"})
    for (uint16_t lane : {0, 1}) {
      check(makeProgram<format::AllReduceT>(lane, 8), device);
      check(makeProgram<format::AllReduceT>(lane, 8, true), device);
      check(makeProgram<format::ReduceScatterT>(lane, 8), device);
      check(makeProgram<format::AllGatherT>(lane, 8), device);
      check(makeProgram<format::BroadcastT>(lane, 8), device);
    }
}

/// A device needs no room to do nothing, and no lane.
TEST(Collectives, ThatAreInPlaceNeedNoRoom) {
  ProgramBuilder builder = makeProgram<format::AllReduceT>(1, 8, true);
  std::vector<std::byte> bytes = builder.program();
  const format::Entry &entry =
      *format::GetProgram(bytes.data())->entries()->Get(0);
  EXPECT_EQ(planEntry(entry).shifted, 0u);
  EXPECT_EQ(planEntry(entry).lanes, 1u);
  EXPECT_EQ(planEntry(entry, /*isAlone=*/false).lanes, 2u);
  RankedRun alone(builder, nullptr);
  EXPECT_EQ(alone.context->walker().getStream().laneCount(), 1u);
  EXPECT_EQ(alone.values(), (std::vector<float>{2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST(Collectives, OfSeveralRanksAreTheirs) {
  TwinRanks twins;
  auto check = [&](ProgramBuilder builder, std::vector<float> expected) {
    RankedRun run(builder, &twins.ranks);
    for (int i = 0; i < 3; ++i)
      EXPECT_EQ(run.values(), expected);
  };
  for (uint16_t lane : {0, 1}) {
    std::vector<float> sums = {3, 5, 7, 9, 11, 13, 15, 17};
    check(makeProgram<format::AllReduceT>(lane, 8), sums);
    check(makeProgram<format::AllReduceT>(lane, 8, true), sums);
    check(makeProgram<format::ReduceScatterT>(lane, 4),
          {11, 13, 15, 17, 6, 7, 8, 9});
    check(makeProgram<format::AllGatherT>(lane, 4), {2, 3, 4, 5, 2, 3, 4, 5});
    check(makeProgram<format::BroadcastT>(lane, 8), {2, 3, 4, 5, 6, 7, 8, 9});
  }
}

/// The first of two parts is not that of the second rank.
TEST(Collectives, RefuseAnotherRanksPart) {
  TwinRanks twins;
  for (ProgramBuilder builder :
       {makeProgram<format::ReduceScatterT>(0, 4, true),
        makeProgram<format::AllGatherT>(0, 4, true)}) {
    RankedRun run(builder, &twins.ranks);
    EXPECT_THAT(run.context->run(),
                failsWith(Code::BadData, "of another rank's part"));
  }
}

/// The second rank finds its part by its number, and replaces that alone.
TEST(Collectives, FindTheRanksOwnPart) {
  TwinRanks twins;
  ProgramBuilder builder = makeProgram<format::ReduceScatterT>(0, 4, true);
  builder.entry().slot_count = 1;
  builder.entry().rank_slot = 0;
  for (auto &command : builder.entry().body->commands)
    if (auto *table = command->action.AsReduceScatter())
      table->to = builder.view(
          table->from,
          code({{SizeOp::slot, 0}, {SizeOp::constant, 16}, {SizeOp::mul, 0}}),
          16);
  RankedRun run(builder, &twins.ranks);
  EXPECT_EQ(run.values(), (std::vector<float>{2, 3, 4, 5, 11, 13, 15, 17}));
  EXPECT_FALSE(run.context->walker().workingSet().empty());
}

/// What the transport gathers is added here.
TEST(Collectives, InATreeAreGathered) {
  TwinRanks twins;
  for (uint16_t lane : {0, 1}) {
    twins.transport->calls = 0;
    ProgramBuilder builder = makeProgram<format::AllReduceT>(lane, 8);
    for (auto &command : builder.entry().body->commands)
      if (auto *table = command->action.AsAllReduce())
        table->tree = true;
    EXPECT_EQ(RankedRun(builder, &twins.ranks).values(),
              (std::vector<float>{3, 5, 7, 9, 11, 13, 15, 17}));
    EXPECT_EQ(twins.transport->calls, 2) << "of one gathering";
  }
}

/// Whatever a lane does after an error, the run ends, and says it once.
TEST(Collectives, EndARunWithTheirError) {
  for (uint16_t lane : {0, 1, 2}) {
    TwinRanks twins;
    twins.transport->failing = 1;
    ProgramBuilder builder = makeProgram<format::AllReduceT>(lane, 8);
    RankedRun run(builder, &twins.ranks);
    EXPECT_THAT(run.context->run(), succeeds());
    EXPECT_THAT(run.context->run(), failsWith(Code::Peer, "is gone"));
    EXPECT_THAT(run.context->run(), failsWith(Code::Peer, "is gone"));
    EXPECT_EQ(twins.transport->calls, 2);
  }
}

TEST(Collectives, AreTraced) {
  for (uint16_t lane : {0, 1})
    for (bool isAlone : {true, false}) {
      TwinRanks twins;
      ProgramBuilder builder = makeProgram<format::AllReduceT>(lane, 8);
      RankedRun run(builder, isAlone ? nullptr : &twins.ranks);
      Stream &stream = run.context->walker().getStream();
      Trace trace(stream.laneCount());
      ASSERT_THAT(stream.trace(&trace), succeeds());
      EXPECT_THAT(run.context->run(), succeeds());
      ASSERT_THAT(stream.trace(nullptr), succeeds());
      int found = 0;
      for (const TraceEvent &event : trace.take().events)
        if (run.context->walker().command(event.command).action_type() ==
            format::Action::AllReduce) {
          EXPECT_EQ(event.lane, lane);
          EXPECT_EQ(event.bytes, 32);
          ++found;
        }
      EXPECT_EQ(found, 1);
    }
}

TEST(Collectives, RefuseWhatIsKnownOnceThereAreRanks) {
  TwinRanks twins;
  ProgramBuilder gather = makeProgram<format::AllGatherT>(1, 5);
  EXPECT_THAT(RankedRun(gather, &twins.ranks).context->run(),
              failsWith(Code::BadData, "a collective of 5 f32 by 2 ranks does "
                                       "not fit its buffers"));
  EXPECT_THAT(RankedRun(gather, nullptr).context->run(), succeeds());
  ProgramBuilder given = makeProgram<format::BroadcastT>(0, 5);
  for (auto &command : given.entry().body->commands)
    if (auto *table = command->action.AsBroadcast())
      table->root = 2;
  EXPECT_THAT(RankedRun(given, &twins.ranks).context->run(),
              failsWith(Code::Usage, "a broadcast of rank 2: there are 2"));
  EXPECT_EQ(twins.transport->calls, 0);
}

TEST(Collectives, InATreeAreRefusedByDevices) {
  TwinRanks twins;
  ProgramBuilder builder = makeProgram<format::AllReduceT>(0, 8);
  for (auto &command : builder.entry().body->commands)
    if (auto *table = command->action.AsAllReduce())
      table->tree = true;
  auto executable = loadEmulated(builder);
  const format::Entry *entry = executable->findEntry(EntryKind::main);
  EXPECT_THAT(Workspace::create(executable->device(), std::span(&entry, 1),
                                {.communicator = &twins.ranks})
                  .takeStatus(),
              failsWith(Code::Unsupported, "add up in no tree"));
}
