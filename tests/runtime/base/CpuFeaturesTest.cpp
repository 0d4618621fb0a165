#include "runtime/base/CpuFeatures.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

using namespace tcc::runtime;

TEST(CpuFeatures, EveryX86_64CpuHasSse2) {
  EXPECT_TRUE(hasCpuFeature("sse2"));
  EXPECT_TRUE(hasCpuFeature("64bit"));
}

TEST(CpuFeatures, AgreesWithTheCompilersBuiltin) {
  EXPECT_EQ(hasCpuFeature("avx2"), bool(__builtin_cpu_supports("avx2")));
  EXPECT_EQ(hasCpuFeature("avx512f"), bool(__builtin_cpu_supports("avx512f")));
  EXPECT_EQ(hasCpuFeature("avx512vnni"),
            bool(__builtin_cpu_supports("avx512vnni")));
  EXPECT_EQ(hasCpuFeature("fma"), bool(__builtin_cpu_supports("fma")));
}

TEST(CpuFeatures, UnknownNamesAreNotSupported) {
  EXPECT_FALSE(hasCpuFeature("avx4096"));
  EXPECT_FALSE(hasCpuFeature(""));
}

TEST(CpuFeatures, VisitsWhatIsSupported) {
  std::set<std::string> names;
  visitCpuFeatures(
      [](void *user, std::string_view name) {
        static_cast<std::set<std::string> *>(user)->emplace(name);
      },
      &names);
  EXPECT_TRUE(names.count("sse2"));
  for (const std::string &name : names)
    EXPECT_TRUE(hasCpuFeature(name)) << name;
}
