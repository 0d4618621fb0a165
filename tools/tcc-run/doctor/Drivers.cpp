// The CUDA driver, and NVIDIA's libraries.

#include "tools/tcc-run/doctor/Check.h"
#include "tools/tcc-run/doctor/Gpus.h"
#include "tools/tcc-run/doctor/Machine.h"

#include <functional>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::tools;
using namespace tcc::tools::doctor;

/// 12040 is CUDA 12.4.
static std::string nameCuda(int version) {
  return concat(version / 1000, ".", version % 1000 / 10);
}

static Result<int> readDriverVersion(const Machine &machine) {
  auto driver = machine.calls.cudaDriver();
  if (!driver.ok())
    return driver.takeStatus();
  int version = 0;
  if (Status status =
          cuda::check(**driver, (*driver)->driverGetVersion(&version),
                      "asking the CUDA driver for its version");
      !status.ok())
    return status;
  return version;
}

static Finding examineDriver(const Machine &machine) {
  if (auto none = withoutGpu(machine))
    return *none;
  auto version = readDriverVersion(machine);
  if (!version.ok())
    return problem(std::string(version.takeStatus().message()),
                   "install NVIDIA's driver, or start the container with its "
                   "GPUs",
                   "docker run --gpus all IMAGE");
  std::string found = concat("CUDA ", nameCuda(*version));
  constexpr int kLeast = 11080;     // has PTX 7.8, which packages have
  constexpr int kLibraries = 12000; // libraries of CUDA 12 run on it
  const char *look = "nvidia-smi";
  if (*version < kLeast)
    return problem(found,
                   "install a driver of CUDA 11.8 or later: packages "
                   "have PTX 7.8",
                   look);
  if (*version < kLibraries)
    return warning(found,
                   "install a driver of CUDA 12 or later, for cuBLASLt "
                   "and cuDNN",
                   look);
  return ok(found);
}

static Finding examineGeneration(const Machine &machine) {
  if (auto none = withoutGpu(machine))
    return *none;
  auto driver = machine.calls.cudaDriver();
  if (!driver.ok())
    return unknown(driver.takeStatus());
  auto devices = cuda::listDevices(**driver);
  if (!devices.ok())
    return unknown(devices.takeStatus());
  std::string found, old;
  for (const cuda::DeviceDescription &device : *devices) {
    std::string name =
        concat(device.name, " (sm_", device.major, device.minor, ")");
    found += concat(found.empty() ? "" : ", ", name);
    if (device.major < 8 && old.empty())
      old = concat("--device cuda:", &device - devices->data());
  }
  if (!old.empty())
    return problem(found,
                   concat("packages are for sm_80 and later: leave out ", old),
                   "nvidia-smi -L");
  return ok(found);
}

namespace {

struct LibraryRow {
  const char *name;
  const char *plugin, *symbol; ///< what calls the library
  std::function<Result<LibraryVersion>()> Calls::*version;
  const char *install; ///< a shell line
  bool isOfDriver;     ///< its major number is that of CUDA
};

constexpr char kLibraryPlugin[] = "libtcc_cuda_libs.so";
constexpr char kLibrarySymbol[] = "tcc_open_cuda_library";

constexpr LibraryRow kCublasLt = {"cuBLASLt",
                                  kLibraryPlugin,
                                  kLibrarySymbol,
                                  &Calls::cublasLt,
                                  "pip install nvidia-cublas",
                                  true};
constexpr LibraryRow kCudnn = {"cuDNN",
                               kLibraryPlugin,
                               kLibrarySymbol,
                               &Calls::cudnn,
                               "pip install nvidia-cudnn-cu13",
                               false};
constexpr LibraryRow kNccl = {"NCCL",
                              "libtcc_nccl.so",
                              "tcc_open_group_library",
                              &Calls::nccl,
                              "pip install nvidia-nccl-cu13",
                              false};

} // namespace

static Finding examineLibrary(const Machine &machine, const LibraryRow &row) {
  if (auto none = withoutGpu(machine))
    return *none;
  if (machine.calls.environment("TCC_CUDA_LIB") == "none")
    return warning("forbidden by TCC_CUDA_LIB=none", "unset it",
                   "unset TCC_CUDA_LIB");
  if (Status status = machine.calls.plugin(row.plugin, row.symbol);
      !status.ok())
    return problem(std::string(status.message()),
                   concat("name the folder with ", row.plugin,
                          ", which is installed with tcc-run"),
                   "export TCC_PLUGINS=FOLDER");
  auto version = (machine.calls.*row.version)();
  if (!version.ok())
    return warning(
        std::string(version.takeStatus().message()),
        concat("install ", row.name, " and have TCC_CUDA_LIB name its folder"),
        row.install);
  std::string found = version->name;
  auto driver = readDriverVersion(machine);
  if (row.isOfDriver && driver.ok() && version->major > *driver / 1000)
    return problem(
        concat(found, ", but the driver is of CUDA ", nameCuda(*driver)),
        concat("install a driver of CUDA ", version->major,
               ", or the library of CUDA ", *driver / 1000),
        "nvidia-smi");
  return ok(found);
}

static Finding examineCublasLt(const Machine &machine) {
  return examineLibrary(machine, kCublasLt);
}

static Finding examineCudnn(const Machine &machine) {
  return examineLibrary(machine, kCudnn);
}

static Finding examineNccl(const Machine &machine) {
  return examineLibrary(machine, kNccl);
}

static constexpr Check kChecks[] = {
    {"cuda driver", "packages for CUDA run by it", examineDriver},
    {"gpu generation", "packages have code for sm_80 and later",
     examineGeneration},
    {"cublaslt", "multiplies matrices faster than generated kernels",
     examineCublasLt},
    {"cudnn", "convolves faster than generated kernels", examineCudnn},
    {"nccl", "ranks on several GPUs add up by it", examineNccl},
};

std::span<const Check> doctor::driverChecks() { return kChecks; }
