#include "tests/tools/tcc-run/doctor/FakeMachine.h"
#include "tools/tcc-run/doctor/Nvml.h"

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::tests;
using namespace tcc::tools::doctor;

/// The second GPU is another one.
static std::function<void(FakeMachine &)> gpu(FakeGpu second) {
  return [=](FakeMachine &fake) { fake.gpus[1] = second; };
}

static std::function<void(FakeMachine &)> version(int cuda) {
  return [=](FakeMachine &fake) { fake.cudaVersion = cuda; };
}

static void loseDriver(FakeMachine &fake) {
  fake.machine.calls.cudaDriver = []() -> Result<const cuda::Driver *> {
    return Status(Code::Device, "there is no CUDA driver: gone");
  };
}

static void loseNvml(FakeMachine &fake) {
  fake.machine.calls.nvml = []() -> Result<const Nvml *> {
    return Status(Code::Device, "there is no NVML: gone");
  };
}

static void losePlugins(FakeMachine &fake) {
  fake.machine.calls.plugin = [](const char *plugin, const char *) {
    return makeError(Code::Device, plugin, ": cannot open shared object file");
  };
}

static std::function<void(FakeMachine &)>
missing(std::function<Result<LibraryVersion>()> Calls::*library) {
  return [=](FakeMachine &fake) {
    fake.machine.calls.*library = []() -> Result<LibraryVersion> {
      return Status(Code::Device, "there is no such library");
    };
  };
}

static void forbid(FakeMachine &fake) {
  fake.environment["TCC_CUDA_LIB"] = "none";
}

static const std::vector<Case> kDriverCases = {
    {"cuda driver", loseDriver, State::Problem, "no CUDA driver: gone"},
    {"cuda driver", version(11040), State::Problem, "CUDA 11.4"},
    {"cuda driver", version(11080), State::Warning, "CUDA 11.8"},
    {"gpu generation", [](FakeMachine &fake) { fake.computeMajor = 7; },
     State::Problem, "H200 (sm_70), H200 (sm_70)"},
    {"gpu generation", loseDriver, State::Unknown, "no CUDA driver"},
    {"cublaslt", missing(&Calls::cublasLt), State::Warning, "no such library"},
    {"cublaslt", version(12080), State::Problem,
     "13.4.0, but the driver is of CUDA 12.8"},
    {"cublaslt", losePlugins, State::Problem, "libtcc_cuda_libs.so: cannot"},
    {"cublaslt", forbid, State::Warning, "TCC_CUDA_LIB=none"},
    {"cudnn", missing(&Calls::cudnn), State::Warning, "no such library"},
    {"nccl", missing(&Calls::nccl), State::Warning, "no such library"},
    {"nccl", losePlugins, State::Problem, "libtcc_nccl.so: cannot open"},
};

TEST(DoctorDrivers, FindsWhatIsWrong) { expectCases(kDriverCases); }

TEST(DoctorDrivers, HasAWrongCaseForEachCheck) {
  std::vector<Case> cases = kDriverCases; // what cannot be opened is wrong
  for (const char *name : {"cuda driver", "cublaslt", "cudnn", "nccl"})
    cases.push_back({name, nullptr, State::Unknown, ""});
  expectComplete(driverChecks(), cases);
}

static const std::vector<Case> kGpuCases = {
    {"gpu clocks", gpu({.reasons = kNvmlHardwareThermal}), State::Problem,
     "GPU 1 (H200): 345 of 1980 MHz at 34 degrees, kept down by heat"},
    {"gpu clocks", gpu({.reasons = kNvmlPowerBrake}), State::Problem,
     "power supply"},
    {"gpu clocks", gpu({.reasons = kNvmlUserClocks}), State::Warning,
     "clocks that someone set"},
    {"gpu clocks", gpu({.reasons = kNvmlPowerCap}), State::Warning,
     "its power limit"},
    {"gpu clocks", gpu({.error = 15}), State::Unknown, "GPU is lost"},
    {"gpu clocks", loseNvml, State::Unknown, "no NVML"},
    {"gpu persistence", gpu({.isPersistent = 0}), State::Warning,
     "GPU 1 (H200): off"},
    {"gpu persistence", gpu({.error = 15}), State::Unknown, "GPU is lost"},
    {"gpu power", gpu({.powerLimit = 350000}), State::Warning, "350 W, 700 W"},
    {"gpu power", gpu({.error = kNvmlNotSupported}), State::Unknown,
     "Not Supported"},
    {"gpu ecc", gpu({.isEcc = 0}), State::Warning, "off"},
    {"gpu ecc", gpu({.errors = 3}), State::Problem, "3 uncorrected errors"},
    {"gpu ecc", gpu({.error = 15}), State::Unknown, "GPU is lost"},
    {"gpu ecc", gpu({.error = kNvmlNotSupported}), State::Ok, "it has none"},
    {"gpu use", gpu({.memory = {1 << 20, 0, 1 << 20}}), State::Warning,
     "1 MiB of 1 MiB in use"},
    {"gpu use", gpu({.use = {90, 5}}), State::Warning, "busy 90 %"},
    {"gpu use", gpu({.error = 15}), State::Unknown, "GPU is lost"},
    {"gpu mode", gpu({.mode = kNvmlComputeProhibited}), State::Problem,
     "no program may compute"},
    {"gpu mode", gpu({.mode = kNvmlComputeExclusive}), State::Ok,
     "one process at a time"},
    {"gpu mode", gpu({.mode = 9}), State::Unknown, "mode 9"},
    {"gpu link", gpu({.lanes = 8}), State::Warning, "8 of 16 PCIe lanes"},
    {"gpu link", gpu({.error = 15}), State::Unknown, "GPU is lost"},
    {"gpu link", [](FakeMachine &fake) { fake.gpus.clear(); }, State::Unknown,
     "NVML lists no GPU"},
};

TEST(DoctorGpus, FindsWhatIsWrong) { expectCases(kGpuCases); }

TEST(DoctorGpus, HasAWrongCaseForEachCheck) {
  expectComplete(gpuChecks(), kGpuCases);
}

TEST(DoctorGpus, HaveANameTogetherWhereAllSayTheSame) {
  FakeMachine fake;
  EXPECT_EQ(fake.examine("gpu link").found, "all 2 GPUs: 16 of 16 PCIe lanes");
}

/// What is as bad is said of each GPU, the command is for the first.
TEST(DoctorGpus, NamesAllThatAreAsBad) {
  FakeMachine fake;
  fake.gpus.resize(3);
  fake.gpus[1].isPersistent = fake.gpus[2].isPersistent = 0;
  Finding finding = fake.examine("gpu persistence");
  EXPECT_EQ(finding.found, "GPU 1 (H200): off; GPU 2 (H200): off");
  EXPECT_EQ(finding.command, "sudo nvidia-smi -i 1 --persistence-mode=1");
}

TEST(DoctorGpus, AreFineWhereThereAreNone) {
  FakeMachine fake;
  fake.removeGpus();
  losePlugins(fake);
  for (std::span<const Check> topic : {driverChecks(), gpuChecks()})
    for (const Check &check : topic) {
      Finding finding = check.examine(fake.machine);
      EXPECT_EQ(finding.state, State::Ok) << check.name;
      EXPECT_EQ(finding.found, "no NVIDIA GPU here") << check.name;
    }
}

/// A network card of NVIDIA's is no GPU.
TEST(DoctorGpus, AreCardsThatCompute) {
  FakeMachine fake;
  loseDriver(fake);
  EXPECT_EQ(fake.examine("cuda driver").state, State::Problem);
  fake.write("/sys/bus/pci/devices/0000:01:00.0/class", "0x020000\n");
  EXPECT_EQ(fake.examine("cuda driver").state, State::Ok);
}

TEST(DoctorNvml, NamesWhatALibraryLacks) {
  Nvml table = {};
  Status none = loadNvml(table, "libtcc_of_no_one.so.1");
  EXPECT_NE(none.message().find("there is no NVML"), std::string::npos);
  Status other = loadNvml(table, "libc.so.6");
  EXPECT_EQ(other.message(), "'libc.so.6' has no nvmlInit_v2");
}

TEST(DoctorNvml, IsFilledByBothGenerationsOfNames) {
  for (const char *path : {TCC_STUB_NVML, TCC_STUB_OLD_NVML}) {
    Nvml table = {};
    Status status = loadNvml(table, path);
    ASSERT_TRUE(status.ok()) << status.message();
    unsigned long long reasons = 0;
    EXPECT_EQ(table.deviceGetCurrentClocksEventReasons(nullptr, &reasons),
              kNvmlSuccess);
    EXPECT_EQ(reasons, kNvmlPowerCap);
    EXPECT_NE(table.deviceGetMaxPcieLinkWidth, nullptr);
  }
}
