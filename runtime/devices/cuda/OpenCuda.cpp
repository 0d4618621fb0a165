#include "runtime/devices/cuda/OpenCuda.h"

#include "runtime/devices/cuda/CudaDevice.h"

#include <charconv>
#include <cstdlib>
#include <dlfcn.h>

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
    auto [end, error] = std::from_chars(
        rest.data() + 1, rest.data() + rest.size(), choice.ordinal);
    if (rest[0] == ':' && error == std::errc() &&
        end == rest.data() + rest.size() && choice.ordinal >= 0)
      return choice;
  }
  return std::nullopt;
}

/// The folder of the library or program that this code is part of.
static std::string ownFolder() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<const void *>(&ownFolder), &info) ||
      !info.dli_fname)
    return ".";
  std::string path = info.dli_fname;
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

Result<const Driver *> cuda::findEmulatedDriver() {
  const char *given = std::getenv("TCC_PLUGINS");
  void *library = nullptr;
  if (given)
    library = dlopen(concat(given, "/", kPlugin).c_str(), RTLD_NOW);
  if (!library)
    library = dlopen(concat(ownFolder(), "/", kPlugin).c_str(), RTLD_NOW);
  if (!library)
    library = dlopen(kPlugin, RTLD_NOW);
  if (!library)
    return makeError(Code::Device, "there is no emulated device: ", dlerror());
  auto find =
      reinterpret_cast<const Driver *(*)()>(dlsym(library, kPluginDriver));
  if (!find)
    return makeError(Code::Device, "'", kPlugin, "' has no ", kPluginDriver);
  return find();
}

Result<std::unique_ptr<Device>> cuda::openDevice(const Choice &choice,
                                                 const Package &package) {
  Result<const Driver *> driver =
      choice.isEmulated ? findEmulatedDriver() : findDriver();
  if (!driver.ok())
    return driver.takeStatus();
  auto device = CudaDevice::open(**driver, choice, package);
  if (!device.ok())
    return device.takeStatus();
  return std::unique_ptr<Device>(std::move(*device));
}
