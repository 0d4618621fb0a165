#include "runtime/devices/cuda/Tuner.h"

#include <algorithm>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::runtime::cuda;

/// Times that a way is measured after the first, which loads its code.
static constexpr int kTimes = 9;

Result<std::unique_ptr<Tuner>>
Tuner::create(CudaDevice &device, StreamHandle stream,
              std::vector<Measurement> &measured) {
  std::unique_ptr<Tuner> tuner(new Tuner(device, stream, measured));
  const Driver &driver = device.driver();
  int bytes = 0;
  Error error = driver.deviceGetAttribute(&bytes, kCacheBytes, device.handle());
  for (EventHandle *event : {&tuner->before, &tuner->after})
    if (error == kSuccess)
      error = driver.eventCreate(event, /*flags=*/0);
  Status status = device.check(error, "preparing measurements");
  if (status.ok())
    status = tuner->cached.reserve(2 * size_t(std::max(bytes, 0)),
                                   device.allocator({}), "measurements");
  if (!status.ok())
    return status;
  return tuner;
}

Tuner::~Tuner() {
  for (EventHandle event : {before, after})
    if (event)
      driver.eventDestroy(event);
}

Status Tuner::measure(const std::string &work, int64_t way,
                      const std::function<Status()> &enqueue) {
  std::vector<float> times;
  for (int i = 0; i <= kTimes; ++i) {
    // Meanwhile the host gets ahead of the device.
    Error error = driver.memsetD8Async(addressOf(cached.data()),
                                       static_cast<unsigned char>(i),
                                       cached.size(), stream);
    if (error == kSuccess)
      error = driver.eventRecord(before, stream);
    Status status = device.check(error, "measuring");
    if (status.ok())
      status = enqueue();
    if (!status.ok())
      return status;
    float milliseconds = 0;
    error = driver.eventRecord(after, stream);
    if (error == kSuccess)
      error = driver.eventSynchronize(after);
    if (error == kSuccess)
      error = driver.eventElapsedTime(&milliseconds, before, after);
    if (status = device.check(error, "measuring"); !status.ok())
      return status;
    if (i > 0)
      times.push_back(milliseconds);
  }
  auto median = times.begin() + kTimes / 2;
  std::nth_element(times.begin(), median, times.end());
  measured.push_back({work, {way, *median * 1e3}});
  return Status();
}

Status Tuner::tune(const LaunchDescription &launch,
                   std::span<std::byte> workspace,
                   const std::function<Status()> &kernel) {
  std::string work = device.nameWork(launch.work, workspace.size());
  if (!done.insert(work).second)
    return Status();
  if (Status status = measure(work, Tuning::kKernel, kernel); !status.ok())
    return status;
  std::lock_guard lock(device.libraryMutex());
  for (size_t next = 0;;) {
    auto plan = device.libraries()->plan(launch.work, workspace.data(),
                                         workspace.size(), next);
    if (!plan.ok())
      return plan.takeStatus();
    if (!*plan)
      return Status();
    Status status = measure(work, int64_t((*plan)->way()), [&] {
      return (*plan)->enqueue(launch.operands, stream);
    });
    if (!status.ok())
      return status;
    next = (*plan)->way() + 1;
  }
}
