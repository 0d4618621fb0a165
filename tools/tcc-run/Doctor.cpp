#include "runtime/base/CpuFeatures.h"
#include "runtime/devices/cuda/OpenCuda.h"
#include "runtime/package/Format.h"
#include "tools/tcc-run/Json.h"
#include "tools/tcc-run/Session.h"
#include "tools/tcc-run/doctor/Machine.h"
#include "tools/tcc-run/doctor/Report.h"

#include <nlohmann/json.hpp>

#include <fstream>
#include <iostream>
#include <unistd.h>

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;
using nlohmann::ordered_json;

static std::string cpuModel() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name"))
      return line.substr(line.find(": ") + 2);
  return "unknown";
}

/// The driver and its devices, or why there is none.
static ordered_json describeCuda() {
  auto driver = cuda::findDriver();
  if (!driver.ok())
    return {{"problem", driver.takeStatus().message()}};
  auto devices = cuda::listDevices(**driver);
  if (!devices.ok())
    return {{"problem", devices.takeStatus().message()}};
  int version = 0;
  (*driver)->driverGetVersion(&version);
  ordered_json rows = ordered_json::array();
  for (const cuda::DeviceDescription &device : *devices)
    rows.push_back({{"name", device.name},
                    {"arch", concat("sm_", device.major, device.minor)},
                    {"memory_bytes", device.bytes}});
  return {{"driver", concat(version / 1000, ".", version % 1000 / 10)},
          {"devices", std::move(rows)}};
}

/// As `--device` names them.
static ordered_json listDevices(const ordered_json &found) {
  ordered_json names = {"cpu"};
  for (size_t i = 0; found.contains("devices") && i < found["devices"].size();
       ++i)
    names.push_back(concat("cuda:", i));
  if (cuda::findEmulatedDriver().ok())
    names.push_back("emulated");
  return names;
}

static void printCuda(const ordered_json &cuda) {
  if (cuda.contains("problem")) {
    std::cout << "cuda: " << cuda["problem"].get<std::string>() << '\n';
    return;
  }
  std::cout << "cuda: driver " << cuda["driver"].get<std::string>() << '\n';
  for (const ordered_json &device : cuda["devices"])
    std::cout << "  " << device["name"].get<std::string>() << ", "
              << device["arch"].get<std::string>() << ", "
              << device["memory_bytes"].get<uint64_t>() / (1 << 20) << " MiB\n";
}

static void printWords(const char *what, const ordered_json &words) {
  std::cout << what << ':';
  for (const ordered_json &word : words)
    std::cout << ' ' << word.get<std::string>();
  std::cout << '\n';
}

int tools::doctorCommand(const std::string &folder, bool json) {
  ordered_json features = ordered_json::array();
  visitCpuFeatures(
      [](void *user, std::string_view name) {
        static_cast<ordered_json *>(user)->push_back(name);
      },
      &features);
  uint64_t memory = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                    static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  ordered_json document = {
      {"schema_version", 1},
      {"version", TCC_VERSION},
      {"package_format", format::kMajorVersion},
      {"cpu", cpuModel()},
      {"level", concat("x86-64-v", getArchitectureLevel())},
      {"threads", defaultThreadCount()},
      {"memory_bytes", memory},
      {"cuda", describeCuda()},
      {"features", std::move(features)}};
  document["devices"] = listDevices(document["cuda"]);
  auto examined = doctor::examine(
      {.root = "", .folder = folder, .calls = doctor::systemCalls()});
  document["checks"] = doctor::describe(examined);
  if (json) {
    printJson(document);
    return 0;
  }
  std::cout << "tcc-run " << TCC_VERSION << ", reads packages of format "
            << format::kMajorVersion << ".x\n"
            << "cpu: " << cpuModel() << ", x86-64-v" << getArchitectureLevel()
            << '\n'
            << "threads: " << defaultThreadCount() << '\n'
            << "memory: " << memory / (1 << 20) << " MiB\n";
  printCuda(document["cuda"]);
  printWords("devices", document["devices"]);
  printWords("features", document["features"]);
  std::cout << '\n' << doctor::print(examined);
  return 0;
}
