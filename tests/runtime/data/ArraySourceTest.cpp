#include "runtime/data/ArraySource.h"

#include "runtime/data/Npy.h"
#include "runtime/data/Widen.h"
#include "runtime/package/Safetensors.h"
#include "tests/runtime/Fixture.h"

#include <cmath>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <sys/stat.h>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::tests;
namespace fs = std::filesystem;

namespace {

/// Five samples of three floats in a tensor of doubles, and a label each.
class ArraySourceTest : public testing::Test {
protected:
  ArraySourceTest() {
    std::iota(x.begin(), x.end(), 0.5f);
    std::iota(labels.begin(), labels.end(), -2);
    fs::create_directory(folder / "arrays");
    writeX("arrays", {5, 3});
    EXPECT_THAT(writeNpy(folder / "arrays/labels.npy", DType::i16,
                         std::vector<int64_t>{5}, labels.data()),
                succeeds());
    StoredTensor stored[] = {
        {"x", DType::f32, {5, 3}, std::as_bytes(std::span(x))},
        {"labels", DType::i16, {5}, std::as_bytes(std::span(labels))}};
    EXPECT_THAT(writeSafetensors(folder / "arrays.safetensors", stored),
                succeeds());
  }

  void writeX(const std::string &to, std::vector<int64_t> shape) {
    EXPECT_THAT(writeNpy(folder / (to + "/x.npy"), DType::f32, shape, x.data()),
                succeeds());
  }

  Status open(const std::string &spec) {
    auto opened = openSource(spec, tensors);
    if (!opened.ok())
      return opened.takeStatus();
    source = std::move(*opened);
    return Status();
  }

  /// The sample's doubles and its label, or why there is none.
  Status read(int64_t number) {
    std::span<std::byte> parts[] = {
        std::as_writable_bytes(std::span(row)),
        std::as_writable_bytes(std::span(&label, 1))};
    return source->read(/*epoch=*/0, number, parts);
  }

  void expectSamples() {
    ASSERT_EQ(source->sampleCount(), 5);
    for (int64_t number : {4, 0, 3}) {
      ASSERT_THAT(read(number), succeeds());
      for (int64_t i = 0; i < 3; ++i)
        EXPECT_EQ(row[i], x[3 * number + i]);
      EXPECT_EQ(label, labels[number]);
    }
  }

  TemporaryFolder folder;
  std::vector<float> x = std::vector<float>(15);
  std::vector<int16_t> labels = std::vector<int16_t>(5);
  std::vector<BatchTensor> tensors = {{"x", DType::f64, {2, 3}},
                                      {"labels", DType::i64, {2}}};
  std::unique_ptr<SampleSource> source;
  std::array<double, 3> row = {};
  int64_t label = 0;
};

} // namespace

TEST_F(ArraySourceTest, ReadsSamplesOfFiles) {
  ASSERT_THAT(open(std::string("npy:") + (folder / "arrays")), succeeds());
  expectSamples();
  ASSERT_THAT(
      open(std::string("safetensors:") + (folder / "arrays.safetensors")),
      succeeds());
  expectSamples();
}

TEST_F(ArraySourceTest, ReadsArraysInFortransOrder) {
  std::string header = "{'descr': '<f4', 'fortran_order': True, "
                       "'shape': (5, 3), }";
  std::string text("\x93NUMPY\1\0", 8);
  auto length = static_cast<uint16_t>(header.size());
  text.append(reinterpret_cast<const char *>(&length), 2);
  text += header;
  for (int column = 0; column < 3; ++column)
    for (int i = 0; i < 5; ++i)
      text.append(reinterpret_cast<const char *>(&x[3 * i + column]), 4);
  writeBytes(folder / "arrays/x.npy", {text.begin(), text.end()});
  ASSERT_THAT(open(std::string("npy:") + (folder / "arrays")), succeeds());
  expectSamples();
}

TEST_F(ArraySourceTest, ListsWhatDoesNotFit) {
  tensors = {{"x", DType::f64, {2, 4}}, {"y", DType::i64, {2}}};
  Status status = open(std::string("npy:") + (folder / "arrays"));
  EXPECT_THAT(status, failsWith(Code::Usage, "array 'x' is Nx3, expected Nx4"));
  tensors = {{"x", DType::f16, {2, 3}}, {"y", DType::i64, {2}}};
  status = open(std::string("safetensors:") + (folder / "arrays.safetensors"));
  EXPECT_THAT(status,
              failsWith(Code::Usage,
                        "array 'x' is f32, expected f16; there is no array "
                        "'y'; it has 'labels', 'x'"));
  tensors = {{"x", DType::f32, {2, 3}}, {"labels", DType::i64, {2}}};
  writeX("arrays", {3, 5});
  EXPECT_THAT(open(std::string("npy:") + (folder / "arrays")),
              failsWith(Code::Usage, "array 'x' is Nx5"));
  EXPECT_THAT(open("parquet:x"),
              failsWith(Code::Usage,
                        "expected npz:FILE, npy:FOLDER, safetensors:FILE"));
}

// Of the files of others: none, torn ones, and such as lie about their sizes.
TEST_F(ArraySourceTest, RefusesBadFiles) {
  std::string npy = std::string("npy:") + (folder / "arrays");
  std::string tensorsOf =
      std::string("safetensors:") + (folder / "arrays.safetensors");
  EXPECT_THAT(open("npy:" + (folder / "none")),
              failsWith(Code::Io, "cannot read"));
  EXPECT_THAT(open("safetensors:" + (folder / "none")),
              failsWith(Code::Io, ""));
  for (size_t size : {0, 5, 40, 150}) {
    fs::resize_file(folder / "arrays/x.npy", size);
    EXPECT_THAT(open(npy), failsWith(Code::BadData, "x.npy")) << size;
  }
  fs::remove(folder / "arrays/x.npy");
  fs::create_directory(folder / "arrays/x.npy");
  EXPECT_THAT(open(npy), failsWith(Code::Io, "Is a directory"));
  fs::remove(folder / "arrays/x.npy");
  ASSERT_EQ(mkfifo((folder / "arrays/x.npy").c_str(), 0600), 0);
  EXPECT_THAT(open(npy), failsWith(Code::Io, "Invalid argument"));
  fs::resize_file(folder / "arrays.safetensors", 100);
  EXPECT_THAT(open(tensorsOf), failsWith(Code::BadData, "arrays.safetensors"));
}

// No mapping: a read past the end would end the process.
TEST_F(ArraySourceTest, SaysThatAFileHasShrunk) {
  ASSERT_THAT(open(std::string("npy:") + (folder / "arrays")), succeeds());
  auto size = fs::file_size(folder / "arrays/x.npy");
  fs::resize_file(folder / "arrays/x.npy", size - 20);
  ASSERT_THAT(read(2), succeeds());
  std::string says =
      concat("x.npy' ends at byte ", size - 20, ", and had ", size);
  for (int64_t number : {3, 4})
    EXPECT_THAT(read(number), failsWith(Code::BadData, "x.npy' ends at"));
  EXPECT_THAT(read(3), failsWith(Code::BadData, says));
}

template <typename To, typename From>
static std::vector<To> widened(DType to, DType from, std::vector<From> values) {
  EXPECT_TRUE(canWiden(from, to));
  std::vector<To> wide(values.size());
  std::span<std::byte> bytes = std::as_writable_bytes(std::span(wide));
  std::ranges::copy(std::as_bytes(std::span(values)),
                    bytes.last(values.size() * sizeof(From)).begin());
  widenInPlace(from, to, bytes);
  return wide;
}

TEST(Widen, KeepsValues) {
  EXPECT_EQ((widened<int64_t, int32_t>(DType::i64, DType::i32, {-5, 7})),
            (std::vector<int64_t>{-5, 7}));
  EXPECT_EQ((widened<int64_t, uint8_t>(DType::i64, DType::u8, {250})),
            std::vector<int64_t>{250});
  EXPECT_EQ((widened<double, float>(DType::f64, DType::f32, {0.1f, -2})),
            (std::vector<double>{0.1f, -2}));
  EXPECT_EQ((widened<float, uint16_t>(DType::f32, DType::f16,
                                      {0x3c00, 0xc000, 0x0001, 0x7c00})),
            (std::vector<float>{1, -2, 0x1p-24f, HUGE_VALF}));
  EXPECT_TRUE(std::isnan(
      widened<float, uint16_t>(DType::f32, DType::f16, {0x7e00})[0]));
  EXPECT_EQ((widened<double, uint16_t>(DType::f64, DType::f16, {0x3555})),
            std::vector<double>{0x1.554p-2});
  EXPECT_FALSE(canWiden(DType::i64, DType::i32));
  EXPECT_FALSE(canWiden(DType::i64, DType::i64));
  EXPECT_FALSE(canWiden(DType::i8, DType::u16));
}
