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
