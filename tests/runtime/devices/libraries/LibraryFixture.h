//===- LibraryFixture.h - Tests of the libraries' plugin --------*- C++ -*-===//
#ifndef TCC_TESTS_RUNTIME_DEVICES_LIBRARIES_LIBRARYFIXTURE_H
#define TCC_TESTS_RUNTIME_DEVICES_LIBRARIES_LIBRARYFIXTURE_H

#include "runtime/devices/cuda/Library.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tcc::tests {

using format::DType;

/// What the plugin exports.
void *findSymbol(const char *plugin, const char *symbol);

/// Small multiples of 1/8, the same for a seed: exact in all dtypes.
std::vector<double> makeElements(int64_t count, uint64_t seed);

/// Values as their dtype has them; bf16 ones are cut off.
std::vector<char> encode(const std::vector<double> &values, DType dtype);
double decode(const std::vector<char> &bytes, int64_t index, DType dtype);
size_t bytesOf(DType dtype);

/// The simulated driver with a context and a stream.
class LibraryFixture : public testing::Test {
protected:
  void SetUp() override;
  void TearDown() override;

  void open(const runtime::cuda::LibraryChoice &choice);
  void *upload(const std::vector<char> &bytes);
  std::vector<char> download(const void *address, size_t bytes);

  const runtime::cuda::Driver *driver = nullptr;
  runtime::cuda::StreamHandle stream = nullptr;
  std::unique_ptr<runtime::cuda::Library> library;
};

} // namespace tcc::tests

#endif // TCC_TESTS_RUNTIME_DEVICES_LIBRARIES_LIBRARYFIXTURE_H
