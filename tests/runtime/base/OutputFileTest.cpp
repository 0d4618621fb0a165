#include "runtime/base/OutputFile.h"
#include "tests/runtime/Fixture.h"

#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <thread>

using namespace tcc::runtime;
using namespace tcc::tests;

static std::string readFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

static size_t countFiles(const std::string &folder) {
  auto files = std::filesystem::directory_iterator(folder);
  return std::distance(begin(files), end(files));
}

TEST(OutputFile, AppearsWhenCommitted) {
  TemporaryFolder folder;
  auto file = OutputFile::create(folder / "x");
  ASSERT_TRUE(file.ok());
  file->write("ab");
  file->padTo(5);
  file->write("c");
  EXPECT_FALSE(std::filesystem::exists(folder / "x"));
  EXPECT_TRUE(file->commit().ok());
  EXPECT_EQ(readFile(folder / "x"), std::string("ab\0\0\0c", 6));
}

TEST(OutputFile, LeavesWhatWasThereWithoutCommit) {
  TemporaryFolder folder;
  std::ofstream(folder / "x") << "old";
  {
    auto file = OutputFile::create(folder / "x");
    ASSERT_TRUE(file.ok());
    file->write("new");
  }
  EXPECT_EQ(readFile(folder / "x"), "old");
  EXPECT_EQ(countFiles(folder / "."), 1u);
}

TEST(OutputFile, WritesPipesDirectly) {
  TemporaryFolder folder;
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  std::string found;
  std::jthread reader([&] { found = readFile(folder / "pipe"); });
  auto file = OutputFile::create(folder / "pipe");
  ASSERT_TRUE(file.ok());
  file->write("through");
  EXPECT_TRUE(file->commit().ok());
  reader.join();
  EXPECT_EQ(found, "through");
  EXPECT_TRUE(std::filesystem::is_fifo(folder / "pipe"));
}

TEST(OutputFile, FailsWhereNothingCanBeWritten) {
  EXPECT_EQ(OutputFile::create("/absent/x").takeStatus().code(), Code::Io);
  auto full = OutputFile::create("/dev/full");
  ASSERT_TRUE(full.ok());
  full->write("x");
  EXPECT_EQ(full->commit().code(), Code::Io);
}
