// Writes the packages that the tests of the tools run:
//   write_fixture KIND FILE
//
//   add_one          y = x + 1 over batch (1..8) x 4 floats, with a weight 'w'
//   gather           y = t[i]: indices that may be bad
//   idle             launches a kernel that has no buffers
//   lanes            y = z = x + 1, copied on two lanes
//   line             fits y = w x
//   ranked_line      line, for several ranks
//   loop             20000 launches
//   requires         add_one, which requires a word that no runtime knows
//   unknown_command  add_one with a command of a kind that no schema has
//   device_KIND, for the emulated device

#include "tests/runtime/train/LineProgram.h"

#include <cstdio>

using namespace tcc;
using namespace tcc::tests;
using format::StorageClass;

static ProgramBuilder gatherProgram() {
  ProgramBuilder builder;
  std::vector<Expr> rows, count, same, sizes;
  rows.push_back(constant(3));
  sizes.push_back(constant(3));
  count.push_back(constant(4));
  same.push_back(constant(4));
  uint32_t t = builder.input("t", DType::f32, std::move(rows));
  uint32_t i = builder.input("i", DType::i64, std::move(count));
  uint32_t y = builder.output("y", DType::f32, std::move(same));
  builder.entry().inputs[i]->index_max = 2;
  uint32_t table = builder.buffer(StorageClass::input, t, 12);
  uint32_t index = builder.buffer(StorageClass::input, i, 32);
  uint32_t out = builder.buffer(StorageClass::output, y, 16);
  builder
      .launch("gather", {table, index, out, builder.fault()}, std::move(sizes),
              constant(4))
      .fault = true;
  return builder;
}

static ProgramBuilder loopProgram() {
  constexpr int64_t kTrips = 20000;
  ProgramBuilder builder;
  builder.entry().slot_count = 1;
  uint32_t value = builder.scratch(sizeof(float));
  format::LoopT loop;
  loop.trips = constant(kTrips);
  loop.max_trips = kTrips;
  loop.body = std::make_unique<format::BlockT>();
  builder.pushBlock(*builder.command(std::move(loop)).body);
  std::vector<Expr> sizes;
  sizes.push_back(constant(1));
  sizes.push_back(constant(1));
  builder.launch("add_one", {value, value}, std::move(sizes), constant(1));
  return builder;
}

/// a = x + 1; lane 1: b = a; lane 2: c = a; y = b; z = c. Lane 0 waits for
/// lane 2 by way of lane 1.
static ProgramBuilder lanesProgram() {
  auto four = [] {
    std::vector<Expr> sizes;
    sizes.push_back(constant(4));
    return sizes;
  };
  ProgramBuilder builder;
  uint32_t x = builder.buffer(StorageClass::input,
                              builder.input("x", DType::f32, four()), 16);
  uint32_t y = builder.buffer(StorageClass::output,
                              builder.output("y", DType::f32, four()), 16);
  uint32_t z = builder.buffer(StorageClass::output,
                              builder.output("z", DType::f32, four()), 16);
  uint32_t a = builder.scratch(16), b = builder.scratch(16),
           c = builder.scratch(16);
  std::vector<Expr> sizes = four();
  sizes.push_back(constant(4));
  builder.launch("add_one", {x, a}, std::move(sizes), constant(1));
  builder.orderLanes(0, 1);
  builder.orderLanes(0, 2);
  builder.onLane(1);
  builder.copy(a, b, 16);
  builder.orderLanes(1, 0);
  builder.onLane(2);
  builder.copy(a, c, 16);
  builder.orderLanes(2, 1);
  builder.onLane(0);
  builder.copy(b, y, 16);
  builder.orderLanes(1, 0);
  builder.copy(c, z, 16);
  return builder;
}

/// Nothing for an unknown kind.
static std::optional<ProgramBuilder> build(const std::string &kind) {
  if (kind == "gather")
    return gatherProgram();
  if (kind == "line")
    return lineProgram();
  if (kind == "ranked_line")
    return rankedLineProgram();
  if (kind == "loop")
    return loopProgram();
  if (kind == "lanes")
    return lanesProgram();
  if (kind == "idle") {
    ProgramBuilder builder;
    builder.launch("add_one", {}, {}, constant(1));
    return builder;
  }
  if (kind != "add_one" && kind != "requires" && kind != "unknown_command")
    return std::nullopt;
  ProgramBuilder builder = addOneProgram();
  if (kind == "requires")
    builder.tables.requires_ = {"time_travel"};
  builder.weight("w", {1, 2, 3});
  builder.modelTensor("w", {3}, 0);
  return builder;
}

int main(int argc, char **argv) {
  std::string kind = argc == 3 ? argv[1] : "";
  bool isForDevice = kind.starts_with("device_");
  auto builder = build(isForDevice ? kind.substr(7) : kind);
  if (!builder) {
    std::fprintf(
        stderr, "usage: write_fixture [device_](add_one|gather|idle|"
                "lanes|line|loop|ranked_line|requires|unknown_command) FILE\n");
    return 2;
  }
  if (isForDevice)
    builder->compileForDevice();
  std::vector<std::byte> program = builder->program();
  if (kind == "unknown_command")
    spoilFirstCommand(program);
  builder->write(argv[2], program);
  return testing::Test::HasFailure();
}
