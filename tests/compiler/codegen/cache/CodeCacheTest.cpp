// Folders of code: what is kept, shared, damaged, refused and removed.

#include "compiler/codegen/cache/CodeCache.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <thread>

using namespace tcc::codegen;
using testing::HasSubstr;
namespace fs = std::filesystem;

namespace {

Code makeCode(size_t bytes, char first) {
  Code code(bytes);
  for (size_t i = 0; i < bytes; ++i)
    code[i] = static_cast<char>(first + 7 * i);
  return code;
}

class CodeCacheTest : public testing::Test {
protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "cache-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root = pattern;
    folder = root / "some" / "code";
  }
  void TearDown() override { fs::remove_all(root); }

  std::unique_ptr<CodeCache> open(const CodeCache::Limits &limits = {}) {
    auto cache = CodeCache::open(folder.string(), limits);
    if (!cache) {
      ADD_FAILURE() << llvm::toString(cache.takeError());
      return nullptr;
    }
    return std::move(*cache);
  }
  std::string refuse() {
    auto cache = CodeCache::open(folder.string());
    return cache ? "" : llvm::toString(cache.takeError());
  }
  std::vector<fs::path> listFiles() {
    std::vector<fs::path> files;
    for (const auto &entry : fs::directory_iterator(folder))
      if (entry.path().extension() != ".timestamp")
        files.push_back(entry.path());
    return files;
  }

  fs::path root, folder;
};

} // namespace

TEST_F(CodeCacheTest, KeepsWhatWasAdded) {
  Code code = makeCode(1000, 'a'), empty;
  auto cache = open();
  EXPECT_EQ(cache->find("a1"), std::nullopt);
  cache->add("a1", code);
  cache->add("b2", empty);
  EXPECT_EQ(cache->find("a1"), code);
  EXPECT_EQ(open()->find("a1"), code) << "in another process";
  EXPECT_EQ(cache->find("b2"), empty);
  EXPECT_EQ(cache->getHits(), 2);
  EXPECT_EQ(cache->getMisses(), 1);
  EXPECT_EQ(cache->getProblem(), "");
}

TEST_F(CodeCacheTest, MakesWhatIsMissing) {
  auto cache = open();
  int made = 0;
  auto make = [&]() -> llvm::FailureOr<Code> {
    ++made;
    return makeCode(10, 'x');
  };
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(*findOrMake(cache.get(), "a", make), makeCode(10, 'x'));
  EXPECT_EQ(made, 1);
  EXPECT_EQ(*findOrMake(nullptr, "a", make), makeCode(10, 'x'));
  EXPECT_EQ(made, 2);
  auto fail = []() -> llvm::FailureOr<Code> { return llvm::failure(); };
  EXPECT_TRUE(failed(findOrMake(cache.get(), "b", fail)));
  EXPECT_EQ(cache->find("b"), std::nullopt) << "of a failure";
}

/// Each byte and each length, the digest's included.
TEST_F(CodeCacheTest, RemovesDamagedEntries) {
  Code code = makeCode(40, 'a');
  auto cache = open();
  cache->add("a", code);
  ASSERT_EQ(listFiles().size(), 1u);
  fs::path file = listFiles().front();
  std::string bytes(fs::file_size(file), '\0');
  std::ifstream(file).read(bytes.data(), std::streamsize(bytes.size()));
  auto damage = [&](const std::string &damaged) {
    std::ofstream(file) << damaged;
    EXPECT_EQ(cache->find("a"), std::nullopt);
    EXPECT_FALSE(fs::exists(file));
    cache->add("a", code);
    EXPECT_EQ(cache->find("a"), code);
  };
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] ^= 4;
    damage(damaged);
    damage(bytes.substr(0, i));
  }
  damage(bytes + " ");
}

TEST_F(CodeCacheTest, BelongsToItsUser) {
  umask(0);
  open()->add("a", makeCode(1, 'a'));
  auto others = fs::perms::group_all | fs::perms::others_all;
  EXPECT_EQ(fs::status(folder).permissions(), fs::perms::owner_all);
  EXPECT_EQ(fs::status(listFiles().front()).permissions() & others,
            fs::perms::none);
  for (fs::perms writer : {fs::perms::group_write, fs::perms::others_write}) {
    fs::permissions(folder, fs::perms::owner_all | writer);
    EXPECT_THAT(refuse(), HasSubstr("other users may write into it"));
  }
  fs::permissions(folder, fs::perms::owner_all | fs::perms::others_read);
  EXPECT_EQ(refuse(), "");
  folder = root / "50%%" / "other" / "";
  open()->add("a", makeCode(1, 'a'));
  EXPECT_EQ(fs::status(folder).permissions(), fs::perms::owner_all);
  EXPECT_EQ(open()->find("a"), makeCode(1, 'a'));
}

TEST_F(CodeCacheTest, RefusesWhatIsNoFolder) {
  fs::create_directories(folder.parent_path());
  std::ofstream(folder) << "a file";
  EXPECT_THAT(refuse(), HasSubstr(folder.string() + "' cannot hold code: "));
  folder /= "below";
  EXPECT_THAT(refuse(), HasSubstr("Not a directory"));
}

TEST_F(CodeCacheTest, SaysWhyNothingIsKept) {
  auto cache = open();
  fs::remove_all(folder);
  cache->add("a", makeCode(1, 'a'));
  EXPECT_EQ(cache->find("a"), std::nullopt);
  EXPECT_THAT(cache->getProblem(), HasSubstr("No such file or directory"));
}

TEST_F(CodeCacheTest, RemovesWhatWasNotReadForLongest) {
  auto cache = open({.bytes = 5000, .interval = std::chrono::seconds(0)});
  auto age = [&](const std::string &key, int minutes) {
    timespec time{::time(nullptr) - 60 * minutes, 0}, times[] = {time, time};
    std::string file = (folder / ("llvmcache-" + key)).string();
    EXPECT_EQ(utimensat(AT_FDCWD, file.c_str(), times, 0), 0);
  };
  for (int i = 0; i < 8; ++i) {
    cache->add(std::to_string(i), makeCode(968, char(i)));
    age(std::to_string(i), 100 - i);
  }
  EXPECT_NE(cache->find("0"), std::nullopt);
  cache->prune();
  EXPECT_EQ(listFiles().size(), 5u);
  EXPECT_NE(cache->find("0"), std::nullopt) << "was read last";
  EXPECT_EQ(cache->find("1"), std::nullopt);
  EXPECT_NE(cache->find("7"), std::nullopt);
}

/// Readers see whole entries or none, whoever writes and removes.
TEST_F(CodeCacheTest, IsShared) {
  constexpr int kThreads = 4, kRounds = 200;
  std::atomic<int> wrong = 0;
  auto work = [&](int thread) {
    auto cache = open({.bytes = 20000, .interval = std::chrono::seconds(0)});
    for (int i = 0; i < kRounds; ++i) {
      int which = (i * 7 + thread) % 10;
      std::string key = std::to_string(which);
      Code code = makeCode(4000, char(which));
      std::optional<Code> found = cache->find(key);
      wrong += found && *found != code;
      cache->add(key, code);
      if (i % 20 == 0)
        cache->prune();
    }
  };
  std::vector<std::jthread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back(work, i);
  threads.clear();
  EXPECT_EQ(wrong, 0);
}
