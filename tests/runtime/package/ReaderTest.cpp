#include "runtime/package/Reader.h"
#include "runtime/package/Digest.h"
#include "tests/runtime/Fixture.h"

#include <cstring>
#include <random>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::tests;

namespace {

/// A package with code, program and weights, and its bytes.
class ReaderTest : public testing::Test {
protected:
  void SetUp() override {
    ProgramBuilder builder = addOneProgram();
    builder.weight("w", {1, 2, 3});
    builder.write(path);
    bytes = readBytes(path);
    ASSERT_FALSE(bytes.empty());
  }

  /// Opens the bytes and, where that works, makes them ready to run.
  Status openBytes(const std::vector<char> &changed,
                   PackageOptions options = {}) {
    writeBytes(path, changed);
    auto package = Package::open(path, options);
    if (!package.ok())
      return package.takeStatus();
    auto executable = Executable::load(std::move(*package));
    return executable.ok() ? Status() : executable.takeStatus();
  }

  format::FileHeader &header() {
    return *reinterpret_cast<format::FileHeader *>(bytes.data());
  }
  format::SectionEntry &section(size_t index) {
    return reinterpret_cast<format::SectionEntry *>(
        bytes.data() + sizeof(format::FileHeader))[index];
  }
  /// Makes a changed table pass its digest.
  void signTable() {
    header().tableDigest =
        digestOf(std::as_bytes(std::span(&section(0), header().sectionCount)));
  }

  TemporaryFolder folder;
  std::string path = folder / "m.tcc";
  std::vector<char> bytes;
};

} // namespace

TEST_F(ReaderTest, OpensAWholePackage) {
  EXPECT_THAT(openBytes(bytes), succeeds());
}

TEST_F(ReaderTest, RefusesEveryTruncation) {
  std::mt19937 random(1);
  for (int i = 0; i < 500; ++i) {
    size_t length = i < 64 ? i : random() % bytes.size();
    std::vector<char> shorter(bytes.begin(), bytes.begin() + length);
    EXPECT_THAT(openBytes(shorter), failsWith(Code::BadData, "")) << length;
  }
}

TEST_F(ReaderTest, RefusesBitFlipsInEverySection) {
  std::mt19937 random(2);
  for (uint32_t i = 0; i < header().sectionCount; ++i) {
    // The last digest byte, and bytes of the section's contents. Alignment
    // gaps between tensors hold nothing.
    for (int flip = 0; flip < 200; ++flip) {
      std::vector<char> flipped = bytes;
      size_t size = section(i).kind == format::SectionKind::Weights
                        ? 3 * sizeof(float)
                        : section(i).size;
      flipped[section(i).offset + random() % size] ^= 1 << random() % 8;
      EXPECT_THAT(openBytes(flipped), failsWith(Code::BadData, "digest"));
    }
  }
}

TEST_F(ReaderTest, SurvivesBitFlipsAnywhere) {
  std::mt19937 random(3);
  for (int i = 0; i < 500; ++i) {
    std::vector<char> flipped = bytes;
    flipped[random() % bytes.size()] ^= 1 << random() % 8;
    Status status = openBytes(flipped);
    EXPECT_TRUE(status.ok() || status.code() == Code::BadData)
        << status.message();
  }
}

TEST_F(ReaderTest, RefusesAnotherMajorVersionByName) {
  for (uint16_t other : {1, 3}) {
    header().majorVersion = other;
    EXPECT_THAT(openBytes(bytes),
                failsWith(Code::BadData, "version " + std::to_string(other)));
  }
}

TEST_F(ReaderTest, ReadsANewerMinorVersion) {
  header().minorVersion = 7;
  EXPECT_THAT(openBytes(bytes), succeeds());
}

TEST_F(ReaderTest, RefusesSectionsOutsideTheFile) {
  section(0).offset = header().fileSize + format::kPageSize;
  signTable();
  EXPECT_THAT(openBytes(bytes), failsWith(Code::BadData, "section 0"));
  section(0).offset = UINT64_MAX / format::kPageSize * format::kPageSize;
  signTable();
  EXPECT_THAT(openBytes(bytes), failsWith(Code::BadData, "ends after"));
}

TEST_F(ReaderTest, RefusesAFileThatHasNoProgram) {
  section(1).kind = format::SectionKind::Options;
  signTable();
  EXPECT_THAT(openBytes(bytes), failsWith(Code::BadData, "no program"));
}

TEST_F(ReaderTest, SkipsTheWeightDigestsOnDemand) {
  bytes[section(2).offset] ^= 1;
  EXPECT_THAT(openBytes(bytes), failsWith(Code::BadData, "weight 'w'"));
  EXPECT_THAT(openBytes(bytes, {.verifyWeights = false}), succeeds());
}

TEST_F(ReaderTest, MissingAndForeignFiles) {
  EXPECT_EQ(Package::open(folder / "absent").takeStatus().code(), Code::Io);
  EXPECT_EQ(Package::open(folder / "").takeStatus().code(), Code::Io);
  EXPECT_THAT(openBytes({}), failsWith(Code::BadData, "not a tcc package"));
  EXPECT_THAT(openBytes(std::vector<char>(1000, 'x')),
              failsWith(Code::BadData, "magic"));
}

TEST_F(ReaderTest, NamesTheMissingCpuFeature) {
  ProgramBuilder builder = addOneProgram();
  builder.tables.variants[0]->features = {"sse2", "avx4096"};
  builder.write(path);
  EXPECT_THAT(openBytes(readBytes(path)),
              failsWith(Code::Device, "lacks 'avx4096'"));
}
