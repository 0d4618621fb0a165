#include "runtime/data/TensorProto.h"
#include "tests/runtime/Fixture.h"

#include <cstring>
#include <random>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::tests;

static Result<Tensor> parse(const std::string &bytes) {
  return parseTensorProto(std::as_bytes(std::span(bytes)), "x.pb");
}

/// A length-delimited field; the content is shorter than 128 bytes.
static std::string bytesField(int number, const std::string &content) {
  return std::string(1, char(number << 3 | 2)) + char(content.size()) + content;
}

/// A varint field with a value below 128.
static std::string varintField(int number, int value) {
  return std::string(1, char(number << 3)) + char(value);
}

TEST(TensorProto, ReadsRawData) {
  // dims 2, 1 (packed); f32; a name, which is skipped
  Tensor tensor = unwrap(parse(
      bytesField(1, "\2\1") + varintField(2, 1) + bytesField(8, "name") +
      bytesField(9, std::string("\0\0\x80\x3f", 4) + std::string(4, '\0'))));
  EXPECT_EQ(tensor.shape, (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(*reinterpret_cast<const float *>(tensor.data.data()), 1);
}

TEST(TensorProto, ReadsTypedData) {
  // int64_data of i64, unpacked: -1 takes ten bytes
  std::string minusOne = "\x38" + std::string(9, '\xff') + "\x01";
  Tensor tensor =
      unwrap(parse(varintField(1, 1) + varintField(2, 7) + minusOne));
  EXPECT_EQ(*reinterpret_cast<const int64_t *>(tensor.data.data()), -1);
  // int32_data of bool, packed
  tensor = unwrap(parse(varintField(1, 3) + varintField(2, 9) +
                        bytesField(5, std::string("\1\0\1", 3))));
  EXPECT_EQ(std::memcmp(tensor.data.data(), "\1\0\1", 3), 0);
}

TEST(TensorProto, ReadsEmptyTensors) {
  Tensor tensor = unwrap(parse(varintField(1, 0) + varintField(2, 1)));
  EXPECT_EQ(tensor.shape, std::vector<int64_t>{0});
}

TEST(TensorProto, RefusesWhatItCannotRead) {
  EXPECT_THAT(parse("\xff").takeStatus(), failsWith(Code::BadData, "not a"));
  EXPECT_THAT(parse("").takeStatus(), failsWith(Code::BadData, "type 0"));
  EXPECT_THAT(parse(varintField(2, 8)).takeStatus(),
              failsWith(Code::BadData, "type 8"));
  EXPECT_THAT(parse(varintField(1, 100) + varintField(2, 1)).takeStatus(),
              failsWith(Code::BadData, "expected 400"));
  // f32 whose elements stand in int32_data; in two fields
  std::string floatType = varintField(1, 1) + varintField(2, 1);
  std::string one = bytesField(4, std::string("\0\0\x80\x3f", 4));
  EXPECT_THAT(parse(floatType + bytesField(5, "\1")).takeStatus(),
              failsWith(Code::BadData, "field that is not of f32"));
  EXPECT_THAT(parse(floatType + bytesField(5, "\1") + one).takeStatus(),
              failsWith(Code::BadData, "field that is not of f32"));
  EXPECT_TRUE(parse(floatType + one).ok());
  EXPECT_THAT(parse(varintField(2, 1) + bytesField(13, "")).takeStatus(),
              failsWith(Code::BadData, "another file"));
}

TEST(TensorProto, SurvivesAnyBytes) {
  std::mt19937 random(6);
  for (int i = 0; i < 5000; ++i) {
    std::string bytes(random() % 40, '\0');
    for (char &byte : bytes)
      byte = char(random());
    auto tensor = parse(bytes);
    EXPECT_TRUE(tensor.ok() || tensor.takeStatus().code() == Code::BadData);
  }
}
