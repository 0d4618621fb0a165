#include "runtime/base/CpuFeatures.h"
#include "runtime/package/Format.h"
#include "tools/tcc-run/Json.h"
#include "tools/tcc-run/Session.h"

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

int tools::doctorCommand(bool json) {
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
      {"devices", {"cpu"}},
      {"features", std::move(features)}};
  if (json) {
    printJson(document);
    return 0;
  }
  std::cout << "tcc-run " << TCC_VERSION << ", reads packages of format "
            << format::kMajorVersion << ".x\n"
            << "cpu: " << cpuModel() << ", x86-64-v" << getArchitectureLevel()
            << '\n'
            << "threads: " << defaultThreadCount() << '\n'
            << "memory: " << memory / (1 << 20) << " MiB\n"
            << "devices: cpu\nfeatures:";
  for (const ordered_json &feature : document["features"])
    std::cout << ' ' << feature.get<std::string>();
  std::cout << '\n';
  return 0;
}
