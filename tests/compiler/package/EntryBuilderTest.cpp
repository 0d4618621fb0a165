#include "compiler/package/EntryBuilder.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace tcc;
using testing::ElementsAre;

/// The commands of the one block of an entry: what they are, their lanes, and
/// the events of those that have one.
static std::vector<std::string> buildCommands(const std::string &commands) {
  MLIRContext context;
  context.loadDialect<exec::ExecDialect>();
  std::string source = R"(
    exec.entry @main inputs [#exec.tensor<"x", tensor<16xf32>>] outputs []
        attributes {slots = 0 : i64, lanes = 3 : i64} {
      %x = exec.buffer input 0 bytes affine_map<() -> (64)> bound 64 : !exec.buffer<host>
      %a = exec.buffer scratch bytes affine_map<() -> (64)> bound 64 : !exec.buffer<host>
      %b = exec.buffer scratch bytes affine_map<() -> (64)> bound 64 : !exec.buffer<host>
  )" + commands + "}";
  auto module = parseSourceString<ModuleOp>(source, &context);
  flatbuffers::FlatBufferBuilder fbb;
  llvm::DenseMap<StringAttr, uint32_t> kernels;
  fbb.Finish(package::EntryBuilder(fbb, kernels)
                 .build(*module->getOps<exec::EntryOp>().begin()));
  const auto &entry =
      *flatbuffers::GetRoot<format::Entry>(fbb.GetBufferPointer());
  std::vector<std::string> texts;
  for (const format::Command *command : *entry.body()->commands()) {
    std::string text = std::to_string(command->lane()) + " " +
                       format::EnumNameAction(command->action_type());
    if (const auto *record = command->action_as_RecordEvent())
      text += " " + std::to_string(record->event());
    if (const auto *sum = command->action_as_AllReduce(); sum && sum->tree())
      text += " in a tree";
    if (const auto *wait = command->action_as_WaitEvent())
      text += " " + std::to_string(wait->event());
    texts.push_back(text);
  }
  texts.push_back(std::to_string(entry.event_count()) + " events");
  return texts;
}

TEST(EntryBuilderTest, RecordsAnEventBehindWhatIsStarted) {
  EXPECT_THAT(buildCommands(R"(
    %0 = exec.record_event
    exec.wait %0 {lane = 1 : i64}
    %1 = exec.start_copy %x to %a bytes affine_map<() -> (64)> {lane = 1 : i64}
      : !exec.buffer<host>, !exec.buffer<host>
    exec.copy %x to %b bytes affine_map<() -> (64)> : !exec.buffer<host>, !exec.buffer<host>
    exec.wait %1
  )"),
              ElementsAre("0 RecordEvent 0", "1 WaitEvent 0", "1 Copy",
                          "1 RecordEvent 1", "0 Copy", "0 WaitEvent 1",
                          "2 events"));
}

/// A lane is in order.
TEST(EntryBuilderTest, NeedsNoEventOnOneLane) {
  EXPECT_THAT(buildCommands(R"(
    %0 = exec.record_event
    %1 = exec.start_all_reduce %x to %a as f32 count affine_map<() -> (16)>
      : !exec.buffer<host>, !exec.buffer<host>
    exec.wait %0
    exec.wait %1
  )"),
              ElementsAre("0 AllReduce", "0 events"));
}

TEST(EntryBuilderTest, SaysInWhichOrderRanksAddUp) {
  EXPECT_THAT(buildCommands(R"(
    %0 = exec.start_all_reduce %x to %a as f32 count affine_map<() -> (16)> {tree}
      : !exec.buffer<host>, !exec.buffer<host>
    exec.wait %0
  )"),
              ElementsAre("0 AllReduce in a tree", "0 events"));
}

TEST(EntryBuilderTest, HasACommandForEachCollective) {
  EXPECT_THAT(
      buildCommands(R"(
    %0 = exec.start_reduce_scatter %x to %a as f32 count affine_map<() -> (4)>
      : !exec.buffer<host>, !exec.buffer<host>
    exec.wait %0
    %1 = exec.start_all_gather %a to %b as f32 count affine_map<() -> (4)>
      : !exec.buffer<host>, !exec.buffer<host>
    exec.wait %1
    %2 = exec.start_broadcast %b to %b as f32 count affine_map<() -> (4)> {root = 1 : i64}
      : !exec.buffer<host>, !exec.buffer<host>
    exec.wait %2
  )"),
      ElementsAre("0 ReduceScatter", "0 AllGather", "0 Broadcast", "0 events"));
}
