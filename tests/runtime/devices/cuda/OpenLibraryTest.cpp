// For which programs libraries are opened, and what is said where they are not.

#include "runtime/devices/cuda/OpenLibrary.h"
#include "tests/runtime/Fixture.h"

using namespace tcc;
using namespace tcc::runtime::cuda;
using namespace tcc::tests;

namespace {

using Slot = flatbuffers::voffset_t;
/// A kernel's product and convolution, before 2.2.
constexpr Slot kOldSlots[] = {8, 12};

/// A program of one kernel that has a table in `slot`.
flatbuffers::DetachedBuffer makeOldProgram(Slot slot) {
  flatbuffers::FlatBufferBuilder builder;
  auto symbol = builder.CreateString("k");
  flatbuffers::uoffset_t start = builder.StartTable();
  flatbuffers::Offset<void> work(builder.EndTable(start));
  start = builder.StartTable();
  builder.AddOffset(format::Kernel::VT_SYMBOL, symbol);
  builder.AddOffset(slot, work);
  flatbuffers::Offset<format::Kernel> kernel(builder.EndTable(start));
  auto kernels = builder.CreateVector(&kernel, 1);
  start = builder.StartTable();
  builder.AddOffset(format::Program::VT_KERNELS, kernels);
  builder.Finish(flatbuffers::Offset<format::Program>(builder.EndTable(start)));
  return builder.Release();
}

OpenedLibrary openFor(const format::Program &program, bool isEmulated) {
  return unwrap(openLibrary({.isEmulated = isEmulated}, program));
}

} // namespace

/// There is something to say only where libraries would have been asked.
TEST(OpenLibrary, NotesDescriptionsOfOldFormats) {
  for (Slot slot : kOldSlots) {
    flatbuffers::DetachedBuffer bytes = makeOldProgram(slot);
    const auto &program = *flatbuffers::GetRoot<format::Program>(bytes.data());
    OpenedLibrary onDevice = openFor(program, /*isEmulated=*/false);
    EXPECT_EQ(onDevice.library, nullptr);
    EXPECT_THAT(onDevice.note,
                testing::HasSubstr("the package's format is older than 2.2"));
    EXPECT_EQ(openFor(program, /*isEmulated=*/true).note, "");
  }
}

/// A kernel with work of a kind, or with a step, behind those that are known.
TEST(OpenLibrary, NotesWorkOfLaterFormats) {
  for (bool isStep : {false, true}) {
    flatbuffers::FlatBufferBuilder builder;
    format::LibraryWorkT work;
    uint8_t kind = isStep ? 0 : uint8_t(format::WorkKind::MAX) + 1;
    work.kind = format::WorkKind(kind);
    work.steps.push_back(std::make_unique<format::StepT>());
    if (isStep)
      work.steps[0]->kind =
          format::StepKind(uint8_t(format::StepKind::MAX) + 1);
    format::KernelT kernel;
    kernel.symbol = "k";
    kernel.library = std::make_unique<format::LibraryWorkT>(std::move(work));
    format::ProgramT program;
    program.kernels.push_back(
        std::make_unique<format::KernelT>(std::move(kernel)));
    builder.Finish(format::Program::Pack(builder, &program));
    const auto &read =
        *flatbuffers::GetRoot<format::Program>(builder.GetBufferPointer());
    EXPECT_THAT(openFor(read, /*isEmulated=*/false).note,
                testing::StartsWith("1 kernel runs without a library"));
    EXPECT_EQ(openFor(read, /*isEmulated=*/true).note, "");
  }
}

TEST(OpenLibrary, OpensNoneForKernelsAlone) {
  ProgramBuilder builder = addOneProgram();
  std::vector<std::byte> bytes = builder.program();
  OpenedLibrary opened =
      openFor(*format::GetProgram(bytes.data()), /*isEmulated=*/false);
  EXPECT_EQ(opened.library, nullptr);
  EXPECT_EQ(opened.note, "");
}
