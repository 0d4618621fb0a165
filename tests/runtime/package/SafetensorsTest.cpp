#include "runtime/package/Safetensors.h"
#include "tests/runtime/Fixture.h"

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::tests;

static Result<SafetensorsFile> openText(const std::string &header,
                                        const std::string &data) {
  TemporaryFolder folder;
  uint64_t length = header.size();
  std::string text(reinterpret_cast<const char *>(&length), sizeof(length));
  text += header + data;
  writeBytes(folder / "x.safetensors", {text.begin(), text.end()});
  return SafetensorsFile::open(folder / "x.safetensors");
}

TEST(Safetensors, ReadsTensorsAndSkipsMetadata) {
  auto file = unwrap(openText(
      R"({"__metadata__":{"format":"pt"},"w":{"dtype":"I16","shape":[2,1],"data_offsets":[0,4]},"e":{"dtype":"BF16","shape":[0],"data_offsets":[4,4]}})",
      "abcd"));
  ASSERT_EQ(file.tensors().size(), 2u);
  EXPECT_EQ(file.tensors()[1].name, "w");
  EXPECT_EQ(file.tensors()[1].dtype, DType::i16);
  EXPECT_EQ(file.tensors()[1].shape, (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(std::to_integer<char>(file.tensors()[1].bytes[0]), 'a');
}

TEST(Safetensors, RefusesMalformedFiles) {
  for (
      const char *header :
      {"", "[]", "{", "nonsense", R"({"w":1})", R"({"w":{}})",
       R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,3]}})",
       R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
       R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})",
       R"({"w":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})",
       R"({"w":{"dtype":"F32","shape":["1"],"data_offsets":[0,4]}})",
       R"({"w":{"dtype":"F32","shape":1,"data_offsets":[0,4]}})",
       R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4,8]}})",
       R"({"w":{"dtype":"Q4","shape":[1],"data_offsets":[0,4]}})",
       R"({"w":{"dtype":"F64","shape":[4294967296,4294967296],"data_offsets":[0,0]}})"})
    EXPECT_THAT(openText(header, "abcd").takeStatus(),
                failsWith(Code::BadData, "x.safetensors"))
        << header;
}

TEST(Safetensors, RefusesABadHeaderLength) {
  TemporaryFolder folder;
  writeBytes(folder / "x", {});
  EXPECT_EQ(SafetensorsFile::open(folder / "x").takeStatus().code(),
            Code::BadData);
  writeBytes(folder / "x", std::vector<char>(20, '\xff'));
  EXPECT_EQ(SafetensorsFile::open(folder / "x").takeStatus().code(),
            Code::BadData);
  EXPECT_EQ(SafetensorsFile::open(folder / "y").takeStatus().code(), Code::Io);
}

/// As few files as their sizes allow; a tensor that is too large has its own.
TEST(Safetensors, AreDividedIntoFiles) {
  TemporaryFolder folder;
  std::vector<char> zeros(5000);
  std::vector<StoredTensor> tensors;
  for (int64_t size : {100, 10, 5000, 1, 300, 300, 300, 2, 0, 40})
    tensors.push_back({concat("tensor", tensors.size()),
                       DType::u8,
                       {size},
                       std::as_bytes(std::span(zeros).first(size))});
  for (uint64_t most = 1; most < 8000; most += 61) {
    std::span<const StoredTensor> rest = tensors;
    for (size_t count : divideIntoFiles(tensors, most)) {
      ASSERT_THAT(writeSafetensors(folder / "x", rest.first(count)),
                  succeeds());
      uint64_t size = std::filesystem::file_size(folder / "x");
      EXPECT_EQ(size, findOffsets(rest.first(count)).back());
      EXPECT_TRUE(size <= most || count == 1) << size << ", " << most;
      if (count < rest.size()) {
        EXPECT_GT(findOffsets(rest.first(count + 1)).back(), most);
      }
      EXPECT_EQ(unwrap(SafetensorsFile::open(folder / "x")).tensors().size(),
                count);
      rest = rest.subspan(count);
    }
    EXPECT_TRUE(rest.empty());
  }
  EXPECT_TRUE(divideIntoFiles({}, 1).empty());
}
