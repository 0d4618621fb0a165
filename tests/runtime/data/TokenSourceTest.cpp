#include "runtime/data/TokenSource.h"

#include "tests/runtime/Fixture.h"

#include <algorithm>
#include <cstring>
#include <numeric>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::tests;

namespace {

constexpr int64_t kLength = 4;

/// Windows of four tokens and the same one later.
class TokenSourceTest : public testing::Test {
protected:
  template <typename T>
  std::string write(const std::string &name, const std::vector<T> &values,
                    std::vector<int32_t> header = {}) {
    if (!header.empty())
      header.resize(256);
    std::vector<char> bytes;
    auto append = [&](const auto &of) {
      auto added = std::as_bytes(std::span(of));
      auto from = reinterpret_cast<const char *>(added.data());
      bytes.insert(bytes.end(), from, from + added.size());
    };
    append(header);
    append(values);
    writeBytes(folder / name, bytes);
    return folder / name;
  }
  template <typename T> static std::vector<T> count(T first, int number) {
    std::vector<T> values(number);
    std::iota(values.begin(), values.end(), first);
    return values;
  }

  Status open(const std::string &spec) {
    auto opened = openSource(spec, tensors);
    if (!opened.ok())
      return opened.takeStatus();
    source = std::move(*opened);
    return Status();
  }

  /// Tokens, tokens one later, the weight.
  void expectSample(int64_t number, int64_t first) {
    std::array<int64_t, kLength> tokens = {};
    std::array<int32_t, kLength> later = {};
    float weight = 0;
    std::span<std::byte> parts[] = {
        std::as_writable_bytes(std::span(tokens)),
        std::as_writable_bytes(std::span(later)),
        std::as_writable_bytes(std::span(&weight, 1))};
    ASSERT_THAT(source->read(/*epoch=*/0, number, parts), succeeds());
    for (int64_t i = 0; i < kLength; ++i) {
      EXPECT_EQ(tokens[i], first + i) << number;
      EXPECT_EQ(later[i], first + i + 1) << number;
    }
    EXPECT_EQ(weight, 1);
  }

  TemporaryFolder folder;
  std::vector<BatchTensor> tensors = {
      {"ids", DType::i64, {2, kLength}, /*isTarget=*/false, 0},
      {"labels", DType::i32, {2, kLength}, /*isTarget=*/true, 1},
      {"sample_weight", DType::f32, {2}}};
  std::unique_ptr<SampleSource> source;
};

} // namespace

/// 9 tokens have two windows, with the one after each; 8 have one.
TEST_F(TokenSourceTest, WindowsLieOneAfterTheOtherInFiles) {
  std::string first = write("a.bin", count<uint16_t>(65500, 9));
  std::string second = write("b.bin", count<uint16_t>(100, 8));
  std::string none = write("c.bin", count<uint16_t>(1, 4));
  ASSERT_THAT(open(concat("tokens:", first, ",", none, ",", second)),
              succeeds());
  ASSERT_EQ(source->sampleCount(), 3);
  expectSample(2, 100);
  expectSample(1, 65504);
  expectSample(0, 65500);
}

TEST_F(TokenSourceTest, HeadersSayTheType) {
  std::string narrow = write("a.bin", count<uint16_t>(7, 5), {20240520, 1, 5});
  tensors[1].dtype = DType::i64;
  std::string wide =
      write("b.bin", count<uint32_t>(70000, 9), {20240801, 7, 9});
  std::vector<BatchTensor> pair = {tensors[0]};
  std::swap(tensors, pair);
  ASSERT_THAT(open(concat("tokens:", narrow, ",", wide)), succeeds());
  ASSERT_EQ(source->sampleCount(), 3);
  std::array<int64_t, kLength> tokens = {};
  std::span<std::byte> part = std::as_writable_bytes(std::span(tokens));
  ASSERT_THAT(source->read(0, 2, std::span(&part, 1)), succeeds());
  EXPECT_EQ(tokens[0], 70004);
}

TEST_F(TokenSourceTest, TextIsBytes) {
  std::string text = write("a.txt", count<uint8_t>(250, 6));
  ASSERT_THAT(open("text:" + text), succeeds());
  EXPECT_EQ(source->sampleCount(), 1);
  std::string more = write("b.txt", count<uint8_t>(32, 5));
  ASSERT_THAT(open("text:" + more), succeeds());
  expectSample(0, 32);
}

TEST_F(TokenSourceTest, FilesThatLieAreRefused) {
  auto tokens = count<uint16_t>(0, 20);
  auto refuse = [&](std::vector<int32_t> header, const std::string &says) {
    std::string path = write("bad.bin", tokens, std::move(header));
    EXPECT_THAT(open("tokens:" + path), failsWith(Code::BadData, says));
  };
  refuse({20240520, 1, 21}, "its header says 21 tokens of 2 bytes");
  refuse({20240520, 1, -20}, "its header says -20 tokens");
  refuse({20240520, 2, 20}, "version 2 of a file of tokens, expected 1");
  refuse({20240801, 7, 20}, "its header says 20 tokens of 4 bytes");
  std::string odd = write("odd.bin", count<uint8_t>(0, 41));
  EXPECT_THAT(open("tokens:" + odd),
              failsWith(Code::BadData, "41 bytes, expected tokens of 2"));
  std::string brief = write("brief.bin", count<uint16_t>(0, 4));
  EXPECT_THAT(open("tokens:" + brief),
              failsWith(Code::BadData, "no file has the 5 tokens of a sample"));
  std::string empty = write("empty.bin", std::vector<uint16_t>());
  EXPECT_THAT(open("text:" + empty), failsWith(Code::BadData, "no file has"));
  EXPECT_THAT(open(concat("tokens:", odd, "x")),
              failsWith(Code::Io, "odd.binx"));
}

TEST_F(TokenSourceTest, TensorsThatNoTokensAreForAreRefused) {
  std::string path = "tokens:" + write("a.bin", count<uint16_t>(0, 20));
  auto refuse = [&](const std::string &says) {
    EXPECT_THAT(open(path), failsWith(Code::Usage, says));
  };
  auto kept = tensors;
  tensors[0].dtype = DType::f32;
  refuse("nothing for 'ids': it is f32, expected integers");
  tensors = kept;
  tensors[1].shape = {2};
  refuse("nothing for 'labels': it has 1 dimensions");
  tensors[1].shape = {2, 5};
  refuse("nothing for 'labels': it has 5 tokens, 'ids' 4");
  tensors = kept;
  tensors[1].tokensAhead.reset();
  refuse("'labels': it is the target of a loss that is no causal_lm");
  tensors = kept;
  tensors.push_back({"mask", DType::i64, {2, kLength}, false, 0});
  refuse("nothing for 'mask': 'ids' has the tokens");
  tensors = kept;
  tensors[0].dtype = DType::i16;
  refuse("has tokens of u16, 'ids' is i16");
}

TEST_F(TokenSourceTest, AListStaysOneInAnotherFolder) {
  EXPECT_EQ(absoluteData("tokens:/a/b.bin,/c/../d.bin"),
            "tokens:/a/b.bin,/d.bin");
}
