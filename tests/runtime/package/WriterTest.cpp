#include "runtime/package/Writer.h"
#include "runtime/package/Reader.h"
#include "tests/runtime/Fixture.h"

#include <cstring>
#include <numeric>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::tests;

TEST(Writer, WhatIsWrittenIsRead) {
  TemporaryFolder folder;
  ProgramBuilder builder = addOneProgram();
  builder.weight("w", {1, 2, 3});
  builder.weight("v", {4});
  builder.tables.metadata.push_back(std::make_unique<format::MetadataT>());
  builder.tables.metadata.back()->key = "alphabet";
  builder.tables.metadata.back()->value = "abc";
  builder.write(folder / "m.tcc");

  auto package = unwrap(Package::open(folder / "m.tcc"));
  EXPECT_EQ(nameOf(*package->program().entries()->Get(0)), "main");
  EXPECT_EQ(package->program().metadata()->Get(0)->value()->str(), "abc");
  ASSERT_TRUE(package->hasWeight(*package->program().weights()->Get(0)));
  auto values = package->weight(*package->program().weights()->Get(1));
  EXPECT_EQ(*reinterpret_cast<const float *>(values.data()), 4);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(values.data()) % 64, 0u);
}

TEST(Writer, SparseWeightsAreWhole) {
  TemporaryFolder folder;
  ProgramBuilder builder = addOneProgram();
  std::vector<float> values(100001);
  std::iota(values.begin(), values.end(), 0.0f);
  builder.weight("v", {4});
  builder.tables.weights[builder.weight("w", values)]->sparse = true;
  builder.write(folder / "m.tcc");

  auto package = unwrap(Package::open(folder / "m.tcc"));
  const format::ConstTensor &weight = *package->program().weights()->Get(1);
  EXPECT_TRUE(weight.sparse());
  auto bytes = package->weight(weight);
  ASSERT_EQ(bytes.size(), values.size() * sizeof(float));
  EXPECT_EQ(std::memcmp(bytes.data(), values.data(), bytes.size()), 0);
}

TEST(Writer, SameContentGivesSameBytes) {
  TemporaryFolder folder;
  addOneProgram().write(folder / "a.tcc");
  addOneProgram().write(folder / "b.tcc");
  EXPECT_EQ(readBytes(folder / "a.tcc"), readBytes(folder / "b.tcc"));
}

TEST(Writer, FailsWithoutLeavingAFile) {
  TemporaryFolder folder;
  PackageWriter writer;
  EXPECT_THAT(writer.write(folder / "absent/m.tcc"),
              failsWith(Code::Io, "No such file"));
  // A folder of that name cannot be written.
  std::filesystem::create_directories(folder / "taken/inside");
  EXPECT_THAT(writer.write(folder / "taken"),
              failsWith(Code::Io, "Is a directory"));
  size_t files = 0;
  for (auto &entry : std::filesystem::directory_iterator(folder / ""))
    files += entry.is_regular_file();
  EXPECT_EQ(files, 0u);
}

TEST(Writer, ReportsAFullDisk) {
  if (!std::filesystem::exists("/dev/full"))
    GTEST_SKIP() << "no /dev/full";
  TemporaryFolder folder;
  std::string path = folder / "m.tcc";
  // The temporary name is a link to a device without space.
  std::filesystem::create_symlink("/dev/full", concat(path, ".tmp", getpid()));
  std::vector<char> text(100, 'x');
  PackageWriter writer;
  writer.addSection(format::SectionKind::Options,
                    std::as_bytes(std::span(text)));
  EXPECT_THAT(writer.write(path), failsWith(Code::Io, "cannot write"));
  EXPECT_FALSE(std::filesystem::exists(path));
}
