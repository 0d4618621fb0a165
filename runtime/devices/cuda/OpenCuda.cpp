#include "runtime/devices/cuda/OpenCuda.h"

#include "runtime/base/Plugin.h"
#include "runtime/devices/cuda/CudaDevice.h"

#include <charconv>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::runtime::cuda;

static constexpr char kPlugin[] = "libtcc_emulated.so";
static constexpr char kPluginDriver[] = "tcc_emulated_driver";

std::optional<Choice> cuda::parseChoice(std::string_view name) {
  Choice choice;
  for (std::string_view kind : {"cuda", "emulated"}) {
    if (!name.starts_with(kind))
      continue;
    std::string_view rest = name.substr(kind.size());
    choice.isEmulated = kind == "emulated";
    if (rest.empty())
      return choice;
    choice.isNumbered = true;
    auto [end, error] = std::from_chars(
        rest.data() + 1, rest.data() + rest.size(), choice.ordinal);
    if (rest[0] == ':' && error == std::errc() &&
        end == rest.data() + rest.size() && choice.ordinal >= 0)
      return choice;
  }
  return std::nullopt;
}

Result<const Driver *> cuda::findEmulatedDriver() {
  Result<void *> found = findInPlugin(kPlugin, kPluginDriver);
  if (!found.ok())
    return makeError(Code::Device, "there is no emulated device: ",
                     found.takeStatus().message());
  return reinterpret_cast<const Driver *(*)()>(*found)();
}

Result<std::unique_ptr<Device>> cuda::openDevice(const Choice &choice,
                                                 const Package &package,
                                                 Tunings tunings,
                                                 const LogSink &log) {
  Result<const Driver *> driver =
      choice.isEmulated ? findEmulatedDriver() : findDriver();
  if (!driver.ok())
    return driver.takeStatus();
  auto device =
      CudaDevice::open(**driver, choice, package, std::move(tunings), log);
  if (!device.ok())
    return device.takeStatus();
  return std::unique_ptr<Device>(std::move(*device));
}
