// The machine's NCCL, which needs no GPU to make ids.

#include "runtime/devices/cuda/Group.h"

#include "runtime/devices/nccl/Nccl.h"
#include "gtest/gtest.h"

#include <cstdlib>
#include <dlfcn.h>
#include <memory>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::runtime::cuda;

static OpenGroupLibrary findEntry() {
  void *plugin = dlopen(TCC_NCCL_PLUGIN, RTLD_NOW | RTLD_LOCAL);
  EXPECT_TRUE(plugin) << dlerror();
  return reinterpret_cast<OpenGroupLibrary>(dlsym(plugin, kOpenGroupLibrary));
}

TEST(Nccl, NamesItsVersion) {
  EXPECT_EQ(nameNcclVersion(22809), "2.28.9");
  EXPECT_EQ(nameNcclVersion(23007), "2.30.7");
}

/// The plugin's answer where NCCL is looked for in `places`.
static std::string refuse(const GroupChoice &choice) {
  Status status;
  std::unique_ptr<GroupLibrary> library(findEntry()(choice, status));
  if (library)
    return concat("found ", library->name());
  EXPECT_EQ(status.code(), Code::Device);
  return std::string(status.message());
}

/// Before others find the machine's library, which stays open.
TEST(Nccl, RefusesAnOldOne) {
  EXPECT_EQ(refuse({.places = TCC_STUB_NCCL_FOLDER}),
            "NCCL is 2.27.3, expected 2.28.0 or later");
}

TEST(Nccl, SaysWhereItIsLookedFor) {
  if (void *library = dlopen("libnccl.so.2", RTLD_LAZY | RTLD_LOCAL)) {
    dlclose(library);
    GTEST_SKIP() << "not available: a machine without NCCL";
  }
  EXPECT_EQ(refuse({.places = "/nowhere"}),
            "there is no libnccl.so.2 in TCC_CUDA_LIB, CUDA_HOME, CUDA_PATH, "
            "on the loader's path and in /usr/local/cuda");
}

/// Who waits for a rank that does not come says so when it is told to stop.
TEST(Nccl, MeetsNoLongerThanItIsTold) {
  auto find = reinterpret_cast<const Nccl *(*)()>(
      dlsym(dlopen(TCC_EMULATED_PLUGIN, RTLD_NOW), "tcc_emulated_nccl"));
  auto driver = reinterpret_cast<const Driver *(*)()>(
      dlsym(dlopen(TCC_EMULATED_PLUGIN, RTLD_NOW), "tcc_emulated_driver"));
  ContextHandle context;
  driver()->devicePrimaryCtxRetain(&context, 0);
  driver()->ctxPushCurrent(context);
  setenv("TCC_EMULATED_NCCL_FAULT", "meeting", /*overwrite=*/1);
  Status status;
  std::unique_ptr<GroupLibrary> library(
      findEntry()({.simulated = find()}, status));
  ASSERT_TRUE(library);
  int asked = 0;
  auto group = library->join(*library->createId(), /*rank=*/0, /*size=*/2,
                             [&] { return ++asked > 10; });
  unsetenv("TCC_EMULATED_NCCL_FAULT");
  driver()->ctxPopCurrent(&context);
  driver()->devicePrimaryCtxRelease(0);
  ASSERT_FALSE(group.ok());
  Status late = group.takeStatus();
  EXPECT_EQ(late.code(), Code::Peer);
  EXPECT_EQ(late.message(),
            "joining the ranks' devices: NCCL does not come to an end");
}

TEST(Nccl, MakesIdsWithoutAGpu) {
  OpenGroupLibrary open = findEntry();
  ASSERT_TRUE(open);
  Status status;
  std::unique_ptr<GroupLibrary> library(
      open({.places = std::getenv("TCC_CUDA_LIB")}, status));
  if (!library)
    GTEST_SKIP() << "not available: " << status.message();
  EXPECT_EQ(library->name().substr(0, 7), "NCCL 2.") << library->name();
  // They name an interface of the network, which the machine may lack.
  setenv("NCCL_SOCKET_IFNAME", "lo", /*overwrite=*/1);
  auto first = library->createId(), second = library->createId();
  ASSERT_TRUE(first.ok()) << first.takeStatus().message();
  ASSERT_TRUE(second.ok()) << second.takeStatus().message();
  EXPECT_NE(*first, *second);
}
