#include "runtime/devices/libraries/Toolkit.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <filesystem>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::runtime::cuda;
using testing::AllOf;
using testing::HasSubstr;

static constexpr const char *kNames[] = {"libtcc_of_no_one.so.2",
                                         "libtcc_of_no_one.so.1"};

static Status load(const std::string &places, const char *symbol) {
  void *place = nullptr;
  const EntryPoint entries[] = {{symbol, &place}};
  Status status = loadLibrary(kNames, places.c_str(), entries);
  EXPECT_EQ(status.ok(), place != nullptr);
  return status;
}

static std::string messageOf(const Status &status) {
  EXPECT_EQ(status.code(), Code::Device);
  return std::string(status.message());
}

/// By a later name, in a later folder.
TEST(ToolkitTest, LooksIntoAllFoldersForAllNames) {
  std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / "tcc-toolkit-test";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  std::filesystem::create_symlink(TCC_EMULATED_PLUGIN, folder / kNames[1]);
  std::string places = "/nowhere::" + folder.string();
  EXPECT_TRUE(load(places, "tcc_emulated_driver").ok());
  EXPECT_THAT(messageOf(load(places, "tcc_of_no_one")),
              HasSubstr(std::string(kNames[1]) + "' has no tcc_of_no_one"));
  std::filesystem::remove_all(folder);
}

TEST(ToolkitTest, SaysWhereItLooked) {
  EXPECT_THAT(messageOf(load("/nowhere", "tcc_emulated_driver")),
              AllOf(HasSubstr(kNames[0]), HasSubstr("TCC_CUDA_LIB")));
}
