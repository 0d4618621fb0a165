#include "runtime/data/Npy.h"
#include "runtime/data/Npz.h"
#include "tests/runtime/Fixture.h"

#include <cstring>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::tests;

static std::vector<char> npy(const std::string &header,
                             const std::string &data) {
  std::string text("\x93NUMPY\1\0", 8);
  uint16_t length = header.size();
  text.append(reinterpret_cast<const char *>(&length), 2);
  text += header + data;
  return {text.begin(), text.end()};
}

static Result<Tensor> parse(const std::vector<char> &bytes) {
  return parseNpy(std::as_bytes(std::span(bytes)), "x.npy");
}

TEST(Npy, WhatIsWrittenIsRead) {
  TemporaryFolder folder;
  std::vector<float> values = {1, 2, 3, 4, 5, 6};
  for (std::vector<int64_t> shape :
       {std::vector<int64_t>{2, 3}, {6}, {1, 6, 1}}) {
    ASSERT_THAT(writeNpy(folder / "x.npy", DType::f32, shape, values.data()),
                succeeds());
    EXPECT_EQ(readBytes(folder / "x.npy").size() % 64, 24u); // padded header
    Tensor tensor = unwrap(readNpy(folder / "x.npy"));
    EXPECT_EQ(tensor.shape, shape);
    EXPECT_EQ(std::memcmp(tensor.data.data(), values.data(), 24), 0);
  }
}

TEST(Npy, ScalarsAndEmptyArrays) {
  TemporaryFolder folder;
  int64_t value = 7;
  ASSERT_THAT(writeNpy(folder / "x.npy", DType::i64, {}, &value), succeeds());
  Tensor tensor = unwrap(readNpy(folder / "x.npy"));
  EXPECT_EQ(tensor.dtype, DType::i64);
  EXPECT_TRUE(tensor.shape.empty());
  std::vector<int64_t> empty = {0, 3};
  ASSERT_THAT(writeNpy(folder / "x.npy", DType::u8, empty, nullptr),
              succeeds());
  EXPECT_EQ(unwrap(readNpy(folder / "x.npy")).shape, empty);
}

TEST(Npy, ReadsFortranOrder) {
  std::string data;
  for (float value : {1, 3, 2, 4}) // column by column
    data.append(reinterpret_cast<const char *>(&value), 4);
  Tensor tensor = unwrap(parse(npy("{'descr': '<f4', 'fortran_order': True, "
                                   "'shape': (2, 2), }\n",
                                   data)));
  auto values = reinterpret_cast<const float *>(tensor.data.data());
  EXPECT_EQ(std::vector<float>(values, values + 4),
            (std::vector<float>{1, 2, 3, 4}));
}

TEST(Npy, WritesBf16AsF32) {
  TemporaryFolder folder;
  std::vector<uint16_t> values = {0x3f80, 0xc000}; // 1, -2
  std::vector<int64_t> shape = {2};
  ASSERT_THAT(writeNpy(folder / "x.npy", DType::bf16, shape, values.data()),
              succeeds());
  Tensor tensor = unwrap(readNpy(folder / "x.npy"));
  EXPECT_EQ(tensor.dtype, DType::f32);
  EXPECT_EQ(reinterpret_cast<const float *>(tensor.data.data())[1], -2);
}

TEST(Npy, RefusesMalformedFiles) {
  std::string shape22 = "{'descr': '<f4', 'fortran_order': False, 'shape': ";
  for (auto &bytes :
       {npy("", ""), npy("{}", ""), npy(shape22 + "(2, 2), }", "short"),
        npy(shape22 + "(2, -2), }", ""), npy(shape22 + "(2 2", ""),
        npy(shape22 + "(99999999999, 99999999999), }", ""),
        npy("{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }",
            "abcd"),
        npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", "abcd"),
        std::vector<char>(5, 'x')})
    EXPECT_EQ(parse(bytes).takeStatus().code(), Code::BadData);
  EXPECT_EQ(readNpy("/absent.npy").takeStatus().code(), Code::Io);
}

TEST(Npz, RefusesWhatIsNoArchive) {
  TemporaryFolder folder;
  for (size_t size : {0, 10, 22, 100}) {
    writeBytes(folder / "x.npz", std::vector<char>(size, 'x'));
    EXPECT_EQ(readNpz(folder / "x.npz", "a").takeStatus().code(),
              Code::BadData);
  }
}
