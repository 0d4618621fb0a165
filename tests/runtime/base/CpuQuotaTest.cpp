#include "runtime/base/CpuQuota.h"
#include "tests/runtime/Fixture.h"

using namespace tcc::runtime;
using namespace tcc::tests;

namespace {

/// A made-up root of proc and sys.
class CpuQuota : public testing::Test {
protected:
  void write(const std::string &path, const std::string &text) {
    std::filesystem::path file(folder / path);
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  void joinGroups(const std::string &text) { write("proc/self/cgroup", text); }
  int quota() const { return cpuQuota(folder / ""); }
  /// Groups, from the root of the hierarchy, and their quotas.
  std::vector<std::pair<std::string, int>> list() const {
    std::vector<std::pair<std::string, int>> found;
    const std::string root = folder / "" + "/sys/fs/cgroup";
    for (const auto &[group, cpus] : listCpuQuotas(folder / ""))
      found.emplace_back(group.substr(root.size()), cpus);
    return found;
  }

  TemporaryFolder folder;
};

} // namespace

TEST_F(CpuQuota, IsTheSmallestUpTheTree) {
  EXPECT_EQ(quota(), 0);
  joinGroups("0::/pod/job\n");
  EXPECT_EQ(quota(), 0);
  write("sys/fs/cgroup/cpu.max", "max 100000\n");
  EXPECT_EQ(quota(), 0);
  write("sys/fs/cgroup/pod/job/cpu.max", "450000 100000\n");
  EXPECT_EQ(quota(), 5);
  write("sys/fs/cgroup/pod/cpu.max", "150000 100000\n");
  EXPECT_EQ(quota(), 2);
  write("sys/fs/cgroup/other/cpu.max", "50000 100000\n");
  EXPECT_EQ(quota(), 2);
  EXPECT_THAT(list(), testing::ElementsAre(testing::Pair("/pod", 2),
                                           testing::Pair("/pod/job", 5)));
}

TEST_F(CpuQuota, OfAContainerIsAtItsRoot) {
  joinGroups("0::/not/mounted/here\n");
  write("sys/fs/cgroup/cpu.max", "300000 100000\n");
  EXPECT_EQ(quota(), 3);
}

TEST_F(CpuQuota, OfTheFirstVersion) {
  joinGroups("5:cpuset:/a\n4:cpu,cpuacct:/a\n0::/\n");
  write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota(), 0);
  write("sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "200000\n");
  write("sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota(), 2);
}
