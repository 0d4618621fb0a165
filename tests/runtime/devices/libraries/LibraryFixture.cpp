#include "tests/runtime/devices/libraries/LibraryFixture.h"

#include <cstring>
#include <dlfcn.h>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::runtime::cuda;
using namespace tcc::tests;

void *tests::findSymbol(const char *plugin, const char *symbol) {
  return dlsym(dlopen(plugin, RTLD_NOW), symbol);
}

std::vector<double> tests::makeElements(int64_t count, uint64_t seed) {
  std::vector<double> elements;
  for (int64_t i = 0; i < count; ++i) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    elements.push_back((int64_t(seed >> 60) - 7) / 8.0);
  }
  return elements;
}

std::vector<char> tests::encode(const std::vector<double> &values,
                                DType dtype) {
  std::vector<char> bytes;
  auto append = [&](auto value) {
    auto *first = reinterpret_cast<const char *>(&value);
    bytes.insert(bytes.end(), first, first + sizeof(value));
  };
  for (double value : values) {
    float narrow = static_cast<float>(value);
    uint32_t bits;
    std::memcpy(&bits, &narrow, sizeof(bits));
    if (dtype == DType::f64)
      append(value);
    else if (dtype == DType::f32)
      append(narrow);
    else if (dtype == DType::f16)
      append(static_cast<_Float16>(narrow));
    else
      append(static_cast<uint16_t>(bits >> 16));
  }
  return bytes;
}

double tests::decode(const std::vector<char> &bytes, int64_t index,
                     DType dtype) {
  auto read = [&]<typename T>(T value) {
    std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
    return value;
  };
  if (dtype == DType::f64)
    return read(double());
  if (dtype == DType::f32)
    return read(float());
  if (dtype == DType::f16)
    return static_cast<float>(read(_Float16()));
  uint32_t bits = uint32_t(read(uint16_t())) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

size_t tests::bytesOf(DType dtype) {
  return dtype == DType::f64 ? 8 : dtype == DType::f32 ? 4 : 2;
}

void LibraryFixture::SetUp() {
  auto findDriver = reinterpret_cast<const Driver *(*)()>(
      findSymbol(TCC_EMULATED_PLUGIN, "tcc_emulated_driver"));
  driver = findDriver();
  ContextHandle context;
  driver->devicePrimaryCtxRetain(&context, 0);
  driver->ctxPushCurrent(context);
  driver->streamCreate(&stream, kNonBlocking);
}

void LibraryFixture::TearDown() {
  library.reset();
  if (stream)
    driver->streamDestroy(stream);
  ContextHandle popped;
  driver->ctxPopCurrent(&popped);
  driver->devicePrimaryCtxRelease(0);
}

void LibraryFixture::open(const LibraryChoice &choice) {
  auto openLibrary = reinterpret_cast<OpenLibrary>(
      findSymbol(TCC_LIBRARY_PLUGIN, "tcc_open_cuda_library"));
  library.reset(openLibrary(choice));
}

void *LibraryFixture::upload(const std::vector<char> &bytes) {
  Address address = 0;
  driver->memAlloc(&address, bytes.size());
  driver->memcpyHtoDAsync(address, bytes.data(), bytes.size(), stream);
  return reinterpret_cast<void *>(address);
}

std::vector<char> LibraryFixture::download(const void *address, size_t bytes) {
  std::vector<char> result(bytes);
  driver->memcpyDtoHAsync(result.data(), reinterpret_cast<Address>(address),
                          bytes, stream);
  return result;
}
