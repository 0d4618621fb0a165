#include "runtime/package/Verify.h"
#include "tests/runtime/Fixture.h"

#include <functional>
#include <random>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::tests;
using format::StorageClass;

static Status verify(ProgramBuilder &builder) {
  return verifyProgram(builder.program(), {});
}

namespace {

/// One way to spoil the add-one program, and what is said of it.
struct Spoiled {
  const char *message;
  std::function<void(ProgramBuilder &)> spoil;
};

format::LaunchT &firstLaunch(ProgramBuilder &builder) {
  return *builder.entry().body->commands[0]->action.AsLaunch();
}

/// Adds a piece to the first variable.
void addPiece(ProgramBuilder &builder, const char *name, int64_t count,
              uint64_t begin) {
  auto piece = std::make_unique<format::PieceT>();
  piece->name = name;
  piece->shape = {count};
  piece->begin = begin;
  builder.tables.variables[0]->pieces.push_back(std::move(piece));
}

/// A collective that is whole: of four floats in place.
template <typename Table> Table &addCollective(ProgramBuilder &builder) {
  Table table;
  table.from = table.to = builder.scratch(16);
  table.count = constant(4);
  return builder.command(std::move(table));
}

const Spoiled kSpoiled[] = {
    {"no such kernel", [](auto &b) { firstLaunch(b).kernel = 9; }},
    {"no such buffer", [](auto &b) { firstLaunch(b).buffers[0] = 2; }},
    {"bad size", [](auto &b) { firstLaunch(b).sizes[0] = slot(5); }},
    {"bad size", [](auto &b) { firstLaunch(b).tasks = code({}); }},
    {"no fault buffer", [](auto &b) { firstLaunch(b).fault = true; }},
    {"bad dimension", [](auto &b) { b.entry().inputs[0]->shape[0] = slot(1); }},
    {"unknown dtype", [](auto &b) { b.entry().outputs[0]->dtype = DType(99); }},
    {"empty range", [](auto &b) { b.tables.symbols[0]->min = 9; }},
    {"empty range", [](auto &b) { b.tables.symbols[0]->divisor = 0; }},
    {"number of size slots", [](auto &b) { b.entry().slot_count = 0; }},
    {"the rank is in no size slot of its own",
     [](auto &b) { b.entry().rank_slot = 0; }}, // that of a symbol
    {"the rank is in no size slot of its own",
     [](auto &b) { b.entry().rank_slot = 1; }},
    {"the rank is in no size slot of its own",
     [](auto &b) { b.entry().rank_slot = -2; }},
    {"a size assignment is out of range",
     [](auto &b) {
       b.entry().slot_count = 2;
       b.entry().rank_slot = 1;
       format::SetSizeT set;
       set.slot = 1;
       set.value = constant(1);
       b.command(std::move(set));
     }},
    {"buffer 0 is out of range",
     [](auto &b) { b.entry().buffers[0]->index = 1; }},
    {"unknown to this runtime",
     [](auto &b) { b.entry().buffers[0]->storage = StorageClass(77); }},
    {"unknown to this runtime",
     [](auto &b) {
       b.entry().buffers[0]->space = format::MemorySpace::device;
     }},
    {"buffer 2 is out of range",
     [](auto &b) {
       b.scratch(64);
       b.entry().scratch_bytes = 63;
     }},
    {"buffer 2 is out of range",
     [](auto &b) { b.buffer(StorageClass::constant, 0, 4); }},
    {"buffer 2 is out of range",
     [](auto &b) { b.buffer(StorageClass::model, 0, 4); }},
    {"view of a later one", [](auto &b) { b.view(2, constant(0), 4); }},
    {"bad offset", [](auto &b) { b.view(0, slot(3), 4); }},
    {"copy is out of range",
     [](auto &b) {
       format::CopyT copy;
       copy.from = 7;
       copy.bytes = constant(1);
       b.command(std::move(copy));
     }},
    {"size assignment",
     [](auto &b) {
       format::SetSizeT set; // a symbol's slot cannot be assigned
       set.value = constant(1);
       b.command(std::move(set));
     }},
    {"an event is out of range",
     [](auto &b) { b.command(format::RecordEventT()); }},
    {"command 2 waits for event 0, which its block did not record before",
     [](auto &b) { b.command(format::WaitEventT()); }},
    {"event 0 is recorded twice",
     [](auto &b) {
       b.entry().event_count = 1;
       b.command(format::RecordEventT());
       b.command(format::RecordEventT());
     }},
    {"event 1 is never recorded",
     [](auto &b) {
       b.entry().event_count = 2;
       b.command(format::RecordEventT());
     }},
    {"command 1 is on lane 1 of 1",
     [](auto &b) { b.entry().body->commands[0]->lane = 1; }},
    {"lane 0 does not wait for what a block does on lane 1",
     [](auto &b) {
       b.entry().lane_count = 2;
       b.entry().body->commands[0]->lane = 1;
     }},
    {"command 2, SetSize, cannot be executed: it is done by the host",
     [](auto &b) {
       format::SetSizeT set;
       set.value = constant(1);
       b.entry().slot_count = 2;
       set.slot = 1;
       b.command(std::move(set));
       b.entry().lane_count = 2;
       b.entry().body->commands[1]->lane = 1;
     }},
    {"it has 17 lanes", [](auto &b) { b.entry().lane_count = 17; }},
    {"it has 0 lanes", [](auto &b) { b.entry().lane_count = 0; }},
    {"entry 'main': command 2, AllReduce, cannot be executed: this runtime "
     "has one group of ranks, 0",
     [](auto &b) { addCollective<format::AllReduceT>(b).group = 1; }},
    {"AllReduce, cannot be executed: ranks do not add up elements of its type",
     [](auto &b) { addCollective<format::AllReduceT>(b).dtype = DType::bf16; }},
    {"ReduceScatter, cannot be executed: ranks do not add up elements",
     [](auto &b) {
       addCollective<format::ReduceScatterT>(b).dtype = DType::u8;
     }},
    {"Broadcast, cannot be executed: its buffers do not hold what it moves",
     [](auto &b) { addCollective<format::BroadcastT>(b).dtype = DType(99); }},
    {"AllGather, cannot be executed: its buffers do not hold what it moves",
     [](auto &b) { addCollective<format::AllGatherT>(b).to = 9; }},
    {"AllGather, cannot be executed: its buffers do not hold what it moves",
     [](auto &b) { addCollective<format::AllGatherT>(b).from = b.fault(); }},
    {"AllReduce, cannot be executed: its buffers do not hold what it moves",
     [](auto &b) { addCollective<format::AllReduceT>(b).count = constant(5); }},
    {"AllReduce, cannot be executed: its buffers do not hold what it moves",
     [](auto &b) {
       addCollective<format::AllReduceT>(b).count = constant(-1);
     }},
    {"AllReduce, cannot be executed: its buffers do not hold what it moves",
     [](auto &b) { addCollective<format::AllReduceT>(b).count = slot(7); }},
    {"command 3, AllReduce, cannot be executed: nothing orders it after the "
     "one before",
     [](auto &b) {
       b.onLane(1);
       addCollective<format::AllReduceT>(b);
       b.onLane(0);
       addCollective<format::AllReduceT>(b);
     }},
    {"command 3, AllReduce, cannot be executed: it is in a branch or loop",
     [](auto &b) {
       format::LoopT loop;
       b.entry().slot_count = 2;
       loop.iteration = 1;
       loop.body = std::make_unique<format::BlockT>();
       b.pushBlock(*b.command(std::move(loop)).body);
       addCollective<format::AllReduceT>(b);
     }},
    {"lane 0 does not wait for what a block does on lane 1",
     [](auto &b) {
       b.onLane(1);
       addCollective<format::AllReduceT>(b);
     }},
    {"command 4 waits for event 0, which its block did not record before",
     [](auto &b) {
       format::LoopT loop;
       b.entry().slot_count = 2;
       b.entry().event_count = 1;
       b.command(format::RecordEventT());
       loop.iteration = 1;
       loop.body = std::make_unique<format::BlockT>();
       b.pushBlock(*b.command(std::move(loop)).body);
       b.command(format::WaitEventT());
     }},
    {"state 0 has no such", [](auto &b) { b.state(0, 3); }},
    {"states 0 and 1 share",
     [](auto &b) {
       b.entry().buffers.clear();
       b.state(0, 0);
       b.state(0, 0);
     }},
    {"larger than what it is a view of",
     [](auto &b) { b.view(0, constant(0), 129); }},
    {"a view of a fault buffer",
     [](auto &b) { b.view(b.fault(), constant(0), 8); }},
    {"unexpected fault buffer",
     [](auto &b) { firstLaunch(b).buffers[1] = b.fault(); }},
    {"copy is out of range",
     [](auto &b) {
       format::CopyT copy;
       copy.from = b.fault();
       copy.bytes = constant(1);
       b.command(std::move(copy));
     }},
    {"condition is out of range",
     [](auto &b) {
       format::IfT branch;
       branch.condition = b.fault();
       branch.then_block = std::make_unique<format::BlockT>();
       branch.else_block = std::make_unique<format::BlockT>();
       b.command(std::move(branch));
     }},
    {"reading a size",
     [](auto &b) {
       b.entry().slot_count = 2;
       format::ReadSizeT read;
       read.slot = 1;
       read.buffer = b.fault();
       read.dtype = DType::i64;
       b.command(std::move(read));
     }},
    {"buffer 0 is out of range",
     [](auto &b) {
       b.modelTensor("m", {2});
       b.inEntry(EntryKind::prepare).buffer(StorageClass::model, 0, 9);
       b.entry(EntryKind::prepare).slot_count = 1;
     }},
    {"fixed to 3 bytes",
     [](auto &b) {
       uint32_t rate = b.input("rate", DType::i32, {});
       b.entry().inputs[rate]->fixed = {1, 2, 3};
     }},
    {"no static shape", [](auto &b) { b.entry().inputs[0]->fixed = {1}; }},
    {"has 2 kernels, not 1",
     [](auto &b) { b.tables.variants[0]->kernel_offsets.push_back(0); }},
    {"has 1 kernels, not 0",
     [](auto &b) { b.tables.variants[0]->target = "cuda"; }},
    {"has kernel 'add_one'",
     [](auto &b) { b.tables.kernels[0]->threads = 32; }},
    {"has kernel 'add_one'",
     [](auto &b) { b.tables.variants[0]->target = "emulated"; }},
    {"lacks kernel 'add_one'",
     [](auto &b) {
       b.tables.variants[0]->kernel_offsets[0] = format::kNoKernel;
     }},
    {"cannot name kernels",
     [](auto &b) { b.tables.variants[0]->kernels = {0}; }},
    {"names 1, which is no kernel of a device",
     [](auto &b) {
       b.tables.variants[0]->target = "cuda";
       b.tables.variants[0]->kernel_offsets.clear();
       b.tables.variants[0]->kernels = {1};
     }},
    {"names 0, which is no kernel of a device",
     [](auto &b) {
       b.tables.variants[0]->target = "cuda";
       b.tables.variants[0]->kernel_offsets.clear();
       b.tables.variants[0]->kernels = {0};
     }},
    {"1025 threads in a block",
     [](auto &b) { b.tables.kernels[0]->threads = 1025; }},
    {"memory unknown to this runtime",
     [](auto &b) { b.entry().space = format::MemorySpace::pinned; }},
    {"memory unknown to this runtime",
     [](auto &b) {
       b.entry(EntryKind::prepare).space = format::MemorySpace::device;
     }},
    {"unknown to this runtime",
     [](auto &b) {
       b.entry().space = format::MemorySpace::device;
       b.entry().worker_scratch_bytes = 0;
     }},
    {"scratch of workers on a device",
     [](auto &b) { b.entry().space = format::MemorySpace::device; }},
    {"kernel of the host", [](auto &b) { b.moveToDevice(b.entry()); }},
    {"'main' and 'eval' lie in different memory",
     [](auto &b) {
       b.entry(EntryKind::eval).slot_count = 1;
       b.entry().body->commands.clear();
       b.moveToDevice(b.entry());
     }},
    {"an update of 6 batches is no power of two of them",
     [](auto &b) { b.tables.exact = 6; }},
    {"it requires 'time?travel', which is unknown to this runtime",
     [](auto &b) { b.tables.requires_ = {"time\ntravel"}; }},
    {"two entries 'eval.2'",
     [](auto &b) {
       b.entry(EntryKind::eval, 1).variant = 2;
       b.entry(EntryKind::eval, 3).variant = 2;
     }},
    {"entry 'eval.1' is no variant of an entry 'eval'",
     [](auto &b) { b.entry(EntryKind::eval, 1).slot_count = 1; }},
    {"entry 'main.1' is no variant of an entry 'main'",
     [](auto &b) { b.entry(EntryKind::main, 1).slot_count = 1; }},
    {"kind unknown to this runtime",
     [](auto &b) { b.entry().kind = EntryKind(99); }},
    {"not aligned",
     [](auto &b) {
       b.weight("w", {1});
       b.tables.weights[0]->offset = 8;
     }},
    {"bad type",
     [](auto &b) {
       b.weight("w", {1});
       b.tables.weights[0]->shape = {INT64_MAX, INT64_MAX};
     }},
    {"held by an unknown weight", [](auto &b) { b.modelTensor("m", {1}, 3); }},
    {"two variables 'v'",
     [](auto &b) {
       b.variable("v", DType::f32, {2});
       b.variable("v", DType::f32, {2});
     }},
    {"variable 'v' has a bad type",
     [](auto &b) { b.variable("v", DType::f32, {-1}); }},
    {"variable 'v' has a bad type",
     [](auto &b) { b.variable("v", DType(99), {2}); }},
    {"unknown kind",
     [](auto &b) {
       b.variable("v", DType::f32, {2});
       b.tables.variables[0]->kind = format::VariableKind(9);
     }},
    {"'v' is no field of the step",
     [](auto &b) {
       b.variable("v", DType::f32, {});
       b.tables.variables[0]->field = format::StepField::fault;
     }},
    {"'v' is no field of the step",
     [](auto &b) {
       b.variable("v", DType::i64, {2});
       b.tables.variables[0]->field = format::StepField::fault;
     }},
    {"two variables are the step's field seed",
     [](auto &b) {
       b.field(format::StepField::seed);
       b.tables.variables[0]->name = "v";
       b.field(format::StepField::seed);
     }},
    {"'v' is no part of what it is a slice of",
     [](auto &b) {
       b.variable("v", DType::f32, {2});
       b.tables.variables[0]->global_shape = {4};
       b.tables.variables[0]->offset = {3};
     }},
    {"'v' is no part of what it is a slice of",
     [](auto &b) {
       b.variable("v", DType::f32, {2});
       b.tables.variables[0]->global_shape = {4};
     }},
    {"variable 'v' has a bad room",
     [](auto &b) {
       b.variable("v", DType::f32, {17});
       b.tables.variables[0]->room = 64;
     }},
    {"variable 'm' does not hold its pieces",
     [](auto &b) {
       b.variable("m", DType::f32, {16});
       b.tables.variables[0]->ranks = 2;
       addPiece(b, "m/w", 17, 16);
     }},
    {"variable 'm' does not hold its pieces",
     [](auto &b) {
       b.variable("m", DType::f32, {16});
       addPiece(b, "m/w", 16, 0);
     }},
    {"variable 'step/place' is no field of the step", // of which ranks have
                                                      // parts
     [](auto &b) {
       b.tables.variables[b.field(format::StepField::place)]->ranks = 2;
     }},
    {"variable 'n' does not hold its pieces", // of another number of ranks
     [](auto &b) {
       b.variable("m", DType::f32, {16});
       b.variable("n", DType::f32, {16});
       b.tables.variables[0]->ranks = 2;
       b.tables.variables[1]->ranks = 3;
     }},
    {"'ema/w' is the mean of no parameter", // of another shape
     [](auto &b) {
       b.variable("m", DType::f32, {16}, format::VariableKind::ema);
       b.variable("w", DType::f32, {15});
       b.tables.variables[0]->ranks = 2;
       addPiece(b, "ema/w", 16, 0);
       b.tables.variables[0]->pieces[0]->parameter = "w";
     }},
    {"'ema/w' is the mean of no parameter", // of integers
     [](auto &b) {
       b.variable("m", DType::i8, {16}, format::VariableKind::ema);
       b.variable("w", DType::f32, {16});
       b.tables.variables[0]->ranks = 2;
       addPiece(b, "ema/w", 16, 0);
       b.tables.variables[0]->pieces[0]->parameter = "w";
     }},
    {"there are two variables 'm'",
     [](auto &b) {
       b.variable("m", DType::f32, {16});
       b.tables.variables[0]->ranks = 2;
       addPiece(b, "m", 16, 0);
     }},
    {"setting 'k' has an unknown variable",
     [](auto &b) {
       b.setting("k", b.variable("v", DType::f64, {}));
       b.tables.settings[0]->variable = 1;
     }},
    {"setting 'k' has a bad type",
     [](auto &b) { b.setting("k", b.variable("v", DType::bf16, {})); }},
    {"setting 'k' has a bad type",
     [](auto &b) {
       b.setting("k", b.variable("v", DType::f64, {}));
       b.tables.settings[0]->initial.pop_back();
     }},
    {"setting 'k' has no elements",
     [](auto &b) { b.setting("k", b.variable("v", DType::f64, {0})); }},
    {"setting 'k' has no values",
     [](auto &b) {
       b.setting("k", b.variable("v", DType::f64, {}));
       b.tables.settings[0]->range = nullptr;
     }},
    {"setting 'k' has no values",
     [](auto &b) {
       b.setting("k", b.variable("v", DType::f64, {}));
       *b.tables.settings[0]->range = {NAN, 1, false, false};
     }},
    {"setting 'k' is a list of words",
     [](auto &b) {
       b.setting("k", b.variable("v", DType::f64, {2}));
       b.tables.settings[0]->words = {"word"};
     }},
    {"two settings 'k'",
     [](auto &b) {
       b.setting("k", b.variable("v", DType::f64, {}));
       b.setting("k", 0);
     }},
    {"buffer 2 is out of range",
     [](auto &b) { b.buffer(StorageClass::variable, 0, 4); }},
    {"buffer 2 is out of range",
     [](auto &b) {
       b.buffer(StorageClass::variable, b.variable("v", DType::f32, {2}), 9);
     }},
    {"unknown source", [](auto &b) { b.weight("w", {1}, {4}); }},
};

} // namespace

TEST(Verify, AcceptsAWholeProgram) {
  ProgramBuilder builder = addOneProgram();
  EXPECT_THAT(verify(builder), succeeds());
}

TEST(Verify, AcceptsCollectivesInOneOrder) {
  ProgramBuilder builder = addOneProgram();
  addCollective<format::AllReduceT>(builder).count = slot(0);
  builder.orderLanes(0, 1);
  builder.onLane(1);
  addCollective<format::ReduceScatterT>(builder);
  addCollective<format::AllGatherT>(builder).dtype = DType::boolean;
  builder.orderLanes(1, 0);
  builder.onLane(0);
  addCollective<format::BroadcastT>(builder).root = 7;
  EXPECT_THAT(verify(builder), succeeds());
}

/// They lie at 0, 64, 128 and end at 132: a buffer may go on to that end.
TEST(Verify, KnowsWhereVariablesLie) {
  for (auto [index, bytes, fits] : {std::tuple(0, 132, true),
                                    {0, 133, false},
                                    {1, 68, true},
                                    {1, 69, false},
                                    {2, 4, true},
                                    {2, 5, false}}) {
    ProgramBuilder builder = addOneProgram();
    for (const char *name : {"a", "b", "c"})
      builder.variable(name, DType::f32, {1});
    builder.tables.variables[0]->shape = {16};
    builder.tables.variables[1]->shape = {3};
    builder.buffer(StorageClass::variable, index, bytes);
    EXPECT_EQ(verify(builder).ok(), fits) << index << " " << bytes;
  }
}

TEST(Verify, RefusesWhatIsOutOfRange) {
  for (const Spoiled &spoiled : kSpoiled) {
    ProgramBuilder builder = addOneProgram();
    spoiled.spoil(builder);
    EXPECT_THAT(verify(builder), failsWith(Code::BadData, spoiled.message));
  }
}

TEST(Verify, RefusesCommandsOfOtherKinds) {
  ProgramBuilder builder = addOneProgram();
  std::vector<std::byte> program = builder.program();
  spoilFirstCommand(program);
  EXPECT_THAT(verifyProgram(program, {}),
              failsWith(Code::BadData,
                        "entry 'main': command 1 is of kind 99, which is "
                        "unknown to this runtime"));
}

TEST(Verify, RefusesDeeplyNestedBlocks) {
  ProgramBuilder builder = addOneProgram();
  uint32_t condition = builder.scratch(1);
  for (int depth = 0; depth < 40; ++depth) {
    format::IfT &added = builder.branch(condition);
    builder.pushBlock(*added.then_block);
  }
  EXPECT_THAT(verify(builder), failsWith(Code::BadData, "nested deeper"));
}

TEST(Verify, SurvivesBitFlipsOfTheProgram) {
  ProgramBuilder builder = addOneProgram();
  std::vector<std::byte> bytes = builder.program();
  std::mt19937 random(4);
  for (int i = 0; i < 5000; ++i) {
    std::vector<std::byte> flipped = bytes;
    flipped[random() % bytes.size()] ^= std::byte(1 << random() % 8);
    Status status = verifyProgram(flipped, {});
    EXPECT_TRUE(status.ok() || status.code() == Code::BadData);
  }
  EXPECT_THAT(verifyProgram({}, {}), failsWith(Code::BadData, "malformed"));
}
