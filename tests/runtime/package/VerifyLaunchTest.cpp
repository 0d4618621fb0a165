// Launches on a device are as their kernels' code takes them.

#include "runtime/package/Verify.h"
#include "tests/runtime/Fixture.h"

#include <functional>
#include <random>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::tests;

namespace {

/// One way to spoil the program, and what is said of it.
struct Spoiled {
  const char *message;
  std::function<void(ProgramBuilder &)> spoil;
};

Status verify(ProgramBuilder &builder) {
  return verifyProgram(builder.program(), {});
}

/// x + 1 + 1 on a device, through 64 bytes of scratch.
ProgramBuilder deviceProgram() {
  ProgramBuilder builder = addOneProgram();
  format::LaunchT &first =
      *builder.entry().body->commands[0]->action.AsLaunch();
  uint32_t middle = builder.scratch(128), out = first.buffers[1];
  first.buffers[1] = middle;
  std::vector<Expr> sizes;
  sizes.push_back(slot(0));
  sizes.push_back(constant(4));
  builder.launch("add_one", {middle, out}, std::move(sizes), slot(0)).node =
      "second";
  builder.compileForDevice();
  return builder;
}

format::LaunchT &secondLaunch(ProgramBuilder &builder) {
  return *builder.entry().body->commands[1]->action.AsLaunch();
}

/// The second launch reads from byte `offset` of the scratch on.
void readFrom(ProgramBuilder &builder, Expr offset) {
  uint32_t view =
      builder.view(secondLaunch(builder).buffers[0], std::move(offset), 64);
  builder.entry().buffers[view]->space = format::MemorySpace::device;
  secondLaunch(builder).buffers[0] = view;
  builder.tables.kernels[0]->alignments[0] = 16;
}

Expr times(int64_t factor) {
  return code({{format::SizeOp::slot, 0},
               {format::SizeOp::constant, factor},
               {format::SizeOp::mul, 0}});
}

const Spoiled kSpoiled[] = {
    {"'second' has other arguments than that of 'add_one_node'",
     [](auto &b) { secondLaunch(b).buffers.pop_back(); }},
    {"other arguments", [](auto &b) { secondLaunch(b).sizes.pop_back(); }},
    {"other arguments",
     [](auto &b) {
       uint32_t fault = b.fault();
       b.entry().buffers[fault]->space = format::MemorySpace::device;
       secondLaunch(b).buffers[1] = fault;
       secondLaunch(b).fault = true;
     }},
    {"has 2 buffers, not 1",
     [](auto &b) { b.tables.kernels[0]->alignments.pop_back(); }},
    {"aligned to 3 bytes",
     [](auto &b) { b.tables.kernels[0]->alignments[1] = 3; }},
    {"aligned to 0 bytes",
     [](auto &b) { b.tables.kernels[0]->alignments[1] = 0; }},
    {"'second' has a misaligned buffer 0",
     [](auto &b) { readFrom(b, constant(8)); }},
    {"a misaligned buffer 0", [](auto &b) { readFrom(b, times(8)); }},
    {"a misaligned buffer 0",
     [](auto &b) {
       readFrom(b, times(16));
       readFrom(b, constant(4));
     }},
};

} // namespace

TEST(VerifyLaunch, RefusesWhatIsNotAsItsKernel) {
  for (const Spoiled &spoiled : kSpoiled) {
    ProgramBuilder builder = deviceProgram();
    spoiled.spoil(builder);
    EXPECT_THAT(verify(builder), failsWith(Code::BadData, spoiled.message));
  }
  ProgramBuilder aligned = deviceProgram();
  readFrom(aligned, times(16));
  readFrom(aligned, constant(48));
  EXPECT_THAT(verify(aligned), succeeds());
}

TEST(VerifyLaunch, SurvivesBitFlips) {
  ProgramBuilder builder = deviceProgram();
  std::vector<std::byte> bytes = builder.program();
  std::mt19937 random(4);
  for (int i = 0; i < 5000; ++i) {
    std::vector<std::byte> flipped = bytes;
    flipped[random() % bytes.size()] ^= std::byte(1 << random() % 8);
    Status status = verifyProgram(flipped, {});
    EXPECT_TRUE(status.ok() || status.code() == Code::BadData);
  }
}
