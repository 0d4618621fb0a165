#include "tests/runtime/train/LineProgram.h"

#include "runtime/package/BatchTree.h"

#include <bit>

using namespace tcc;
using namespace tcc::tests;
using format::StepField;
using format::StorageClass;
using format::VariableKind;

namespace {

/// Where a program's variables and constants are.
struct LineBuilder {
  ProgramBuilder builder;
  uint32_t w, gradient, lr, iteration, fault, sums, seed;
  uint32_t first, place, world;
  int64_t batch = kLineBatch; ///< of the variant that is added
  uint16_t variant = 0;

  void declare();
  void addInit();
  void addSteps();
  void addRanks();
  void addInference();

  std::vector<Expr> dims(std::initializer_list<int64_t> extents) {
    std::vector<Expr> result;
    for (int64_t extent : extents)
      result.push_back(constant(extent));
    return result;
  }
  uint32_t variable(uint32_t index, uint64_t bytes) {
    return builder.buffer(StorageClass::variable, index, bytes);
  }
  uint32_t input(const char *name) {
    return builder.buffer(StorageClass::input,
                          builder.input(name, DType::f32, dims({batch})),
                          batch * sizeof(float));
  }
  uint32_t output(const char *name, DType dtype, uint64_t bytes,
                  std::initializer_list<int64_t> extents = {}) {
    return builder.buffer(StorageClass::output,
                          builder.output(name, dtype, dims(extents)), bytes);
  }
  void copy(uint32_t constantIndex, uint32_t variableIndex, int64_t bytes) {
    format::CopyT copy;
    copy.from = builder.buffer(StorageClass::constant, constantIndex, bytes);
    copy.to = variable(variableIndex, bytes);
    copy.bytes = constant(bytes);
    builder.command(std::move(copy));
  }
  void allReduce(uint32_t variableIndex, int64_t count, const char *node = "") {
    format::AllReduceT table;
    table.node = node;
    table.from = table.to = variable(variableIndex, count * sizeof(float));
    table.count = constant(count);
    builder.command(std::move(table));
  }
  /// What lane 1 does, between all that lane 0 does before and after.
  void reduce() {
    builder.orderLanes(0, 1);
    builder.onLane(1);
    allReduce(gradient, 1, "gradient/w");
    allReduce(sums, 2);
    builder.orderLanes(1, 0);
    builder.onLane(0);
  }
  void launchGradient() {
    uint32_t x = input("x"), y = input("y");
    builder.launch("line_gradient",
                   {x, y, variable(w, 4), variable(gradient, 4),
                    variable(sums, 8), variable(place, 8), variable(world, 8),
                    variable(fault, 8)},
                   dims({batch}), constant(1));
  }
  void launchUpdate() {
    uint32_t loss = output("loss", DType::f64, 8);
    uint32_t skipped = output("skipped", DType::boolean, 1);
    builder.launch("line_update",
                   {variable(w, 4), variable(gradient, 4), variable(sums, 8),
                    variable(lr, 4), variable(iteration, 8), variable(fault, 8),
                    loss, skipped, variable(first, 8), variable(place, 8)},
                   {}, constant(1));
  }
};

void LineBuilder::declare() {
  w = builder.variable("w", DType::f32, {1}, VariableKind::parameter);
  gradient =
      builder.variable("gradient/w", DType::f32, {1}, VariableKind::gradient);
  builder.tables.variables[gradient]->parameter = "w";
  lr = builder.variable("set/lr", DType::f32, {}, VariableKind::setting);
  builder.setting("lr", lr);
  iteration = builder.field(StepField::iteration);
  fault = builder.field(StepField::fault);
  sums = builder.variable("step/sums", DType::f32, {2});
  seed = builder.field(StepField::seed);
  builder.setting("seed", seed);
  first = builder.field(StepField::first);
  place = builder.field(StepField::place);
  world = builder.field(StepField::world);
}

void LineBuilder::addInit() {
  uint32_t start = builder.weight("w", {0.5f});
  uint32_t rate = builder.weight("rate", {0.1f});
  uint32_t zeros = builder.weight("zeros", {0, 0});
  builder.modelTensor("w", {1}, start);
  copy(start, w, 4);
  copy(rate, lr, 4);
  copy(zeros, gradient, 4);
  for (uint32_t counter : {iteration, fault, sums, seed, first, place})
    copy(zeros, counter, 8);
  // 1 as an i64: the least f32.
  copy(builder.weight("one", {std::bit_cast<float>(1), 0}), world, 8);
}

void LineBuilder::addSteps() {
  builder.inEntry(EntryKind::train_step, variant);
  launchGradient();
  launchUpdate();
  builder.inEntry(EntryKind::accumulate_step, variant);
  launchGradient();
  if (variant > 0)
    return;
  builder.inEntry(EntryKind::apply);
  launchUpdate();
}

void LineBuilder::addRanks() {
  builder.field(StepField::rank);
  builder.inEntry(EntryKind::reduce_step);
  launchGradient();
  reduce();
  launchUpdate();
  builder.inEntry(EntryKind::reduce_apply);
  reduce();
  launchUpdate();
}

void LineBuilder::addInference() {
  builder.inEntry(EntryKind::eval, variant);
  uint32_t x = input("x"), y = input("y");
  uint32_t loss = output("loss", DType::f64, 8);
  uint32_t count = output("count", DType::f64, 8);
  builder.launch("line_loss", {x, y, variable(w, 4), loss, count},
                 dims({batch}), constant(1));
  builder.inEntry(EntryKind::predict, variant);
  uint32_t in = input("x");
  uint32_t out = output("line", DType::f32, batch * sizeof(float), {batch});
  builder.launch("line", {in, variable(w, 4), out}, dims({batch}), constant(1));
}

} // namespace

static LineBuilder buildLine() {
  LineBuilder line;
  line.builder.tables.entries.clear();
  line.builder.inEntry(EntryKind::init);
  line.declare();
  line.addInit();
  line.addSteps();
  line.addInference();
  return line;
}

ProgramBuilder tests::lineProgram() { return std::move(buildLine().builder); }

ProgramBuilder tests::sizedLineProgram() {
  LineBuilder line = buildLine();
  line.batch = kSmallLineBatch;
  line.variant = 1;
  line.addSteps();
  line.addInference();
  return std::move(line.builder);
}

ProgramBuilder tests::rankedLineProgram() {
  LineBuilder line = buildLine();
  line.addRanks();
  return std::move(line.builder);
}

ProgramBuilder tests::dividedLineProgram() {
  ProgramBuilder builder = rankedLineProgram();
  builder.tables.requires_ = {format::kDividedWord};
  uint32_t slot =
      builder.variable("sum/bucket", DType::f32, {4}, VariableKind::slot);
  format::VariableT &variable = *builder.tables.variables[slot];
  variable.ranks = 2;
  auto addPiece = [&](const char *name, int64_t count, uint64_t begin) {
    auto piece = std::make_unique<format::PieceT>();
    piece->name = name;
    piece->shape = {count};
    piece->begin = begin;
    variable.pieces.push_back(std::move(piece));
  };
  addPiece("sum/w", 5, 0);
  addPiece("sum/b", 3, 5);
  std::erase_if(builder.tables.entries, [](const auto &entry) {
    return entry->kind == EntryKind::train_step ||
           entry->kind == EntryKind::apply;
  });
  return builder;
}

ProgramBuilder tests::exactLineProgram(uint32_t batches) {
  ProgramBuilder builder = rankedLineProgram();
  builder.tables.exact = batches;
  builder.tables.requires_ = {format::kExactWord};
  std::erase_if(builder.tables.entries, [](const auto &entry) {
    return entry->kind == EntryKind::train_step ||
           entry->kind == EntryKind::apply ||
           entry->kind == EntryKind::reduce_step;
  });
  for (auto &command : builder.entry(EntryKind::reduce_apply).body->commands)
    if (auto *table = command->action.AsAllReduce())
      table->tree = true;
  return builder;
}
