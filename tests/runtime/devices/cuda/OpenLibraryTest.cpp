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

TEST(OpenLibrary, OpensNoneForKernelsAlone) {
  ProgramBuilder builder = addOneProgram();
  std::vector<std::byte> bytes = builder.program();
  OpenedLibrary opened =
      openFor(*format::GetProgram(bytes.data()), /*isEmulated=*/false);
  EXPECT_EQ(opened.library, nullptr);
  EXPECT_EQ(opened.note, "");
}
