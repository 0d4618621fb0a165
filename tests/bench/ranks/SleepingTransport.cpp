// A transport to ranks that are not there: a message takes the time that
// TCC_LATENCY and TCC_BYTE_TIME, nanoseconds of a message and of a byte of it,
// say, during which no core is busy. Sums are what this rank has. It is found
// under another's name.

#include "runtime/ranks/Transport.h"

#include <cstdlib>
#include <cstring>
#include <thread>

using namespace tcc;
using namespace tcc::runtime;

namespace {

class SleepingTransport final : public Transport {
public:
  explicit SleepingTransport(const Launch &launch)
      : ranks(size_t(launch.size)), latency(read("TCC_LATENCY")),
        byteTime(read("TCC_BYTE_TIME")) {}

  std::string_view name() const override { return "sleeping"; }
  Status allReduce(const void *from, void *to, size_t count,
                   DType dtype) override {
    return move(from, to, count, dtype);
  }
  Status reduceScatter(const void *from, void *to, size_t count,
                       DType dtype) override {
    return move(from, to, count, dtype);
  }
  Status allGather(const void *from, void *to, size_t count,
                   DType dtype) override {
    size_t bytes = count * traitsOf(dtype).bytes;
    for (size_t rank = 0; rank < ranks; ++rank)
      std::memmove(static_cast<std::byte *>(to) + rank * bytes, from, bytes);
    return Status();
  }
  Status broadcast(const void *from, void *to, size_t count, DType dtype,
                   int) override {
    std::memmove(to, from, count * traitsOf(dtype).bytes);
    return Status();
  }
  Status barrier() override { return Status(); }
  void setTimeout(std::chrono::milliseconds) override {}
  void abort() override {}

private:
  static double read(const char *name) {
    const char *text = std::getenv(name);
    return text ? std::atof(text) : 0;
  }
  Status move(const void *from, void *to, size_t count, DType dtype) const {
    size_t bytes = count * traitsOf(dtype).bytes;
    double nanoseconds = latency + byteTime * double(bytes);
    if (nanoseconds > 0)
      std::this_thread::sleep_for(
          std::chrono::nanoseconds(static_cast<int64_t>(nanoseconds)));
    if (from != to)
      std::memmove(to, from, bytes);
    return Status();
  }

  size_t ranks;
  double latency, byteTime;
};

} // namespace

/// As the runtime finds it: see kOpenTransport.
extern "C" __attribute__((visibility("default"))) Transport *
tcc_open_transport(const Launch &launch, std::chrono::milliseconds, Status &) {
  return new SleepingTransport(launch);
}
