#include "runtime/package/Commands.h"

#include "tests/runtime/Fixture.h"

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::tests;

namespace {

/// if (c) { launch } else { while (c) { read a size } }; copy
class NestedProgram {
public:
  NestedProgram() {
    uint32_t condition = builder.scratch(1);
    format::IfT &added = builder.branch(condition);
    builder.pushBlock(*added.then_block);
    builder.launch("add_one", {1, 2}, {}, constant(1));
    builder.popBlock();
    builder.pushBlock(*added.else_block);
    format::LoopT loop;
    loop.condition = condition;
    loop.body = std::make_unique<format::BlockT>();
    builder.pushBlock(*builder.command(std::move(loop)).body);
    format::ReadSizeT read;
    read.buffer = 3;
    builder.command(std::move(read));
    builder.popBlock();
    builder.popBlock();
    format::CopyT copy;
    copy.from = 4;
    copy.to = 5;
    copy.bytes = constant(4);
    builder.command(std::move(copy));
    bytes = builder.program();
  }

  const format::Block &body() const {
    return *format::GetProgram(bytes.data())->entries()->Get(0)->body();
  }

private:
  ProgramBuilder builder;
  std::vector<std::byte> bytes;
};

} // namespace

TEST(Commands, AreWalkedBeforeTheirBlocks) {
  NestedProgram program;
  std::vector<std::string> names;
  forEachCommand(program.body(), [&](const format::Command &command) {
    names.push_back(format::EnumNameAction(command.action_type()));
  });
  EXPECT_THAT(names,
              testing::ElementsAre("If", "Launch", "Loop", "ReadSize", "Copy"));
}

TEST(Commands, HaveBuffersOfTheirOwn) {
  NestedProgram program;
  std::vector<std::vector<uint32_t>> buffers;
  forEachCommand(program.body(), [&](const format::Command &command) {
    auto &own = buffers.emplace_back();
    forEachBuffer(command, [&](uint32_t buffer) { own.push_back(buffer); });
  });
  using Buffers = std::vector<uint32_t>;
  EXPECT_THAT(buffers,
              testing::ElementsAre(Buffers{0}, Buffers{1, 2}, Buffers{0},
                                   Buffers{3}, Buffers{4, 5}));
}

TEST(Commands, LaunchesOfAllBlocksAreSeen) {
  int launches = 0;
  forEachLaunch(NestedProgram().body(),
                [&](const format::Launch &) { ++launches; });
  EXPECT_EQ(launches, 1);
}

/// A loop that only counts lets the host go ahead; sizes and conditions do not.
TEST(Commands, TellWhetherTheHostReads) {
  EXPECT_TRUE(readsBuffers(NestedProgram().body()));
  for (int32_t condition : {-1, 0}) {
    ProgramBuilder builder;
    format::LoopT loop;
    loop.condition = condition;
    loop.body = std::make_unique<format::BlockT>();
    builder.pushBlock(*builder.command(std::move(loop)).body);
    builder.launch("add_one", {0, 1}, {}, constant(1));
    std::vector<std::byte> bytes = builder.program();
    const auto &entry = *format::GetProgram(bytes.data())->entries()->Get(0);
    EXPECT_EQ(readsBuffers(*entry.body()), condition >= 0);
  }
}
