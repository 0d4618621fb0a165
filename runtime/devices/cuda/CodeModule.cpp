#include "runtime/devices/cuda/CodeModule.h"

#include "runtime/devices/cuda/Cubin.h"
#include "runtime/devices/emulated/EmulatedModule.h"
#include "runtime/package/Commands.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::runtime::cuda;
using emulated::ModuleKernel;

CodeModule::CodeModule(CodeModule &&other) noexcept
    : driver(other.driver), chosen(other.chosen), image(std::move(other.image)),
      module(std::exchange(other.module, nullptr)),
      functions(std::move(other.functions)) {}

CodeModule::~CodeModule() {
  if (module)
    driver->moduleUnload(module);
}

//===----------------------------------------------------------------------===//
// Choosing
//===----------------------------------------------------------------------===//

/// 90 of "sm_90"; 0 for what is no name of a cubin that later chips of its
/// kind run ("sm_90a", "ptx").
static int archOf(const format::Variant &variant) {
  std::string_view name = variant.cpu()->string_view();
  int number = 0;
  if (!name.starts_with("sm_"))
    return 0;
  name.remove_prefix(3);
  auto [rest, error] =
      std::from_chars(name.data(), name.data() + name.size(), number);
  return error == std::errc() && rest == name.data() + name.size() ? number : 0;
}

static bool isPtx(const format::Variant &variant) {
  return variant.target()->string_view() == "cuda" &&
         variant.cpu()->string_view() == "ptx";
}

/// A cubin runs on devices of its major version and a minor one not below its
/// own; null if there is none.
static const format::Variant *findCubin(const format::Program &program,
                                        int major, int minor) {
  const format::Variant *best = nullptr;
  for (const format::Variant *variant : *program.variants()) {
    int arch = archOf(*variant);
    if (variant->target()->string_view() == "cuda" && arch / 10 == major &&
        arch % 10 <= minor && (!best || arch > archOf(*best)))
      best = variant;
  }
  return best;
}

/// Null if there is none.
static const format::Variant *findPtx(const format::Program &program) {
  for (const format::Variant *variant : *program.variants())
    if (isPtx(*variant))
      return variant;
  return nullptr;
}

static std::string listCode(const format::Program &program) {
  std::string list;
  for (const format::Variant *variant : *program.variants())
    if (variant->target()->string_view() == "cuda")
      list += concat(list.empty() ? "" : ", ", variant->cpu()->string_view());
  return list.empty() ? "none" : list;
}

//===----------------------------------------------------------------------===//
// Loading
//===----------------------------------------------------------------------===//

/// Loads the module and finds the kernels of the device in it.
Status CodeModule::load(const void *bytes, const Package &package) {
  char log[1024] = "";
  int keys[] = {kJitErrorLog, kJitErrorLogBytes};
  void *values[] = {log, reinterpret_cast<void *>(sizeof(log))};
  std::string doing =
      concat("loading the code for ", chosen->cpu()->string_view(),
             " of package '", package.path(), "'");
  Error error = driver->moduleLoadDataEx(&module, bytes, 2, keys, values);
  log[sizeof(log) - 1] = 0;
  std::replace(log, log + std::strlen(log), '\n', ' ');
  if (log[0])
    doing += concat(" (", static_cast<const char *>(log), ")");
  if (Status status = check(*driver, error, doing); !status.ok())
    return status;
  const auto *kernels = package.program().kernels();
  for (size_t i = 0; kernels && i < kernels->size(); ++i) {
    const format::Kernel *kernel = kernels->Get(i);
    Kernel &added = functions.emplace_back();
    added.threads = kernel->threads();
    if (added.threads == 0)
      continue;
    if (driver->moduleGetFunction(&added.function, module,
                                  kernel->symbol()->c_str()) != kSuccess)
      return makeError(Code::BadData, doing, ": it has no kernel '",
                       kernel->symbol()->string_view(), "'");
  }
  return Status();
}

Result<CodeModule> CodeModule::loadVariant(const Driver &driver,
                                           const Package &package,
                                           const format::Variant &variant) {
  Result<Memory> bytes = package.readSection(variant.image());
  if (!bytes.ok())
    return bytes.takeStatus();
  CodeModule code(driver, variant);
  if (isPtx(variant)) {
    std::string text(reinterpret_cast<const char *>(bytes->data()),
                     bytes->size());
    if (Status status = code.load(text.c_str(), package); !status.ok())
      return status;
    return code;
  }
  if (!isWholeCubin(bytes->span()))
    return makeError(Code::BadData, "the code for ",
                     variant.cpu()->string_view(), " of package '",
                     package.path(), "' is no cubin");
  if (Status status = code.load(bytes->data(), package); !status.ok())
    return status;
  return code;
}

Result<CodeModule> CodeModule::loadCuda(const Driver &driver,
                                        const Package &package, int major,
                                        int minor, const LogSink &log) {
  const format::Program &program = package.program();
  const format::Variant *cubin = findCubin(program, major, minor);
  const format::Variant *ptx = findPtx(program);
  if (!cubin && !ptx)
    return makeError(Code::Device, "package '", package.path(),
                     "' has no code for this device, an sm_", major, minor,
                     ", only: ", listCode(program));
  if (!cubin)
    return loadVariant(driver, package, *ptx);
  Result<CodeModule> code = loadVariant(driver, package, *cubin);
  if (code.ok() || !ptx)
    return code;
  Status refused = code.takeStatus();
  if (refused.code() != Code::Device)
    return refused;
  // A driver is older than the cubin, say.
  log(LogLevel::Warning,
      concat(refused.message(), "; its PTX is compiled instead"));
  return loadVariant(driver, package, *ptx);
}

static void countParameters(const format::Entry &entry,
                            std::vector<ModuleKernel> &kernels) {
  forEachLaunch(*entry.body(), [&](const format::Launch &launch) {
    ModuleKernel &kernel = kernels[launch.kernel()];
    kernel.addresses = launch.buffers() ? launch.buffers()->size() : 0;
    kernel.parameters =
        kernel.addresses + (launch.sizes() ? launch.sizes()->size() : 0);
  });
}

Result<CodeModule> CodeModule::loadEmulated(const Driver &driver,
                                            const Package &package) {
  const format::Program &program = package.program();
  auto variant = std::find_if(
      program.variants()->begin(), program.variants()->end(),
      [](auto *one) { return one->target()->string_view() == "emulated"; });
  if (variant == program.variants()->end())
    return makeError(Code::Device, "package '", package.path(),
                     "' has no emulated code: compile it with --emulate");
  CodeModule code(driver, **variant);
  Result<Memory> bytes = package.readSection(code.chosen->image());
  if (!bytes.ok())
    return bytes.takeStatus();
  Result<CodeImage> mapped = CodeImage::map(bytes->span());
  if (!mapped.ok())
    return mapped.takeStatus();
  code.image = std::move(*mapped);
  std::vector<ModuleKernel> kernels(
      program.kernels() ? program.kernels()->size() : 0);
  for (const format::Entry *entry : *program.entries())
    countParameters(*entry, kernels);
  for (size_t i = 0; i < kernels.size(); ++i) {
    kernels[i].name = program.kernels()->Get(i)->symbol()->c_str();
    uint64_t offset = code.chosen->kernel_offsets()->Get(i);
    kernels[i].function =
        reinterpret_cast<const void *>(code.image->kernelAt(offset));
    if (!kernels[i].function && offset != format::kNoKernel)
      return makeError(Code::BadData, "kernel '", kernels[i].name,
                       "' lies outside the code");
  }
  emulated::EmulatedModule module = {kernels.data(), kernels.size()};
  if (Status status = code.load(&module, package); !status.ok())
    return status;
  return code;
}
