#include "runtime/devices/cuda/CodeModule.h"

#include "runtime/devices/emulated/EmulatedModule.h"
#include "runtime/package/Commands.h"
#include "runtime/package/Cubin.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <string>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::runtime::cuda;
using emulated::ModuleKernel;

CodeModule::CodeModule(CodeModule &&other) noexcept
    : driver(other.driver), image(std::move(other.image)),
      modules(std::exchange(other.modules, {})),
      functions(std::move(other.functions)) {}

CodeModule::~CodeModule() {
  for (ModuleHandle module : modules)
    driver->moduleUnload(module);
}

//===----------------------------------------------------------------------===//
// Choosing
//===----------------------------------------------------------------------===//

using Variants = std::vector<const format::Variant *>;

static bool isPtx(const format::Variant &variant) {
  return variant.cpu()->string_view() == "ptx";
}

static bool names(const format::Variant &variant, uint32_t kernel) {
  const auto *named = variant.kernels();
  return named &&
         std::find(named->begin(), named->end(), kernel) != named->end();
}

/// Code of CUDA that has the kernel: what names it, else what names none.
static Variants findCode(const format::Program &program, uint32_t kernel) {
  Variants own, common;
  for (const format::Variant *variant : *program.variants()) {
    if (variant->target()->string_view() != "cuda")
      continue;
    if (names(*variant, kernel))
      own.push_back(variant);
    else if (!variant->kernels())
      common.push_back(variant);
  }
  return own.empty() ? common : own;
}

/// The newest that runs on the device, of two as new the one for it alone; null
/// if there is none.
static const format::Variant *findCubin(const Variants &variants, int major,
                                        int minor) {
  const format::Variant *best = nullptr;
  int newest = -1;
  for (const format::Variant *variant : variants) {
    auto target = parseCubinTarget(variant->cpu()->string_view());
    if (!target || !target->runsOn(major, minor) || target->number() < newest ||
        (target->number() == newest && !target->isExact))
      continue;
    best = variant;
    newest = target->number();
  }
  return best;
}

/// Null if there is none.
static const format::Variant *findPtx(const Variants &variants) {
  auto found = std::find_if(variants.begin(), variants.end(),
                            [](auto *variant) { return isPtx(*variant); });
  return found == variants.end() ? nullptr : *found;
}

static std::string list(const Variants &variants) {
  std::string text;
  for (const format::Variant *variant : variants)
    text += concat(text.empty() ? "" : ", ", variant->cpu()->string_view());
  return text.empty() ? "none" : text;
}

//===----------------------------------------------------------------------===//
// Loading
//===----------------------------------------------------------------------===//

static std::string describe(const Package &package,
                            const format::Variant &variant) {
  return concat("loading the code for ", variant.cpu()->string_view(),
                " of package '", package.path(), "'");
}

/// Loads `image`, that of `variant`, as the last module of `modules`.
static Status loadModule(const Driver &driver, const void *image,
                         std::string doing,
                         std::vector<ModuleHandle> &modules) {
  char log[1024] = "";
  int keys[] = {kJitErrorLog, kJitErrorLogBytes};
  void *values[] = {log, reinterpret_cast<void *>(sizeof(log))};
  ModuleHandle module = nullptr;
  Error error = driver.moduleLoadDataEx(&module, image, 2, keys, values);
  log[sizeof(log) - 1] = 0;
  std::replace(log, log + std::strlen(log), '\n', ' ');
  if (log[0])
    doing += concat(" (", static_cast<const char *>(log), ")");
  Status status = check(driver, error, doing);
  if (status.ok())
    modules.push_back(module);
  return status;
}

/// Makes `kernel` that of `module` which `described` is there.
static Status findFunction(const Driver &driver, ModuleHandle module,
                           const format::Kernel &described, std::string doing,
                           Kernel &kernel) {
  const auto *name = described.entry() ? described.entry() : described.symbol();
  if (driver.moduleGetFunction(&kernel.function, module, name->c_str()) !=
      kSuccess)
    return makeError(Code::BadData, doing, ": it has no kernel '",
                     name->string_view(), "'");
  kernel.sharedBytes = described.shared_bytes();
  if (kernel.sharedBytes == 0)
    return Status();
  // More than 48 KiB must be asked for.
  return check(driver,
               driver.funcSetAttribute(kernel.function, kMaxDynamicShared,
                                       int(kernel.sharedBytes)),
               concat(doing, ": giving a block of kernel '",
                      name->string_view(), "' ", kernel.sharedBytes,
                      " bytes of shared memory"));
}

namespace tcc::runtime::cuda {

/// Loads each image once, for all kernels that it is chosen for.
class CudaLoader {
public:
  CudaLoader(const Driver &driver, const Package &package, int major, int minor,
             const LogSink &log)
      : driver(driver), package(package), major(major), minor(minor), log(log),
        code(driver) {}

  Result<CodeModule> load();

private:
  Status loadKernel(uint32_t index);
  /// The one of `variants` that is loaded, now or before.
  Result<const format::Variant *> choose(const Variants &variants);
  Status loadOnce(const format::Variant &variant);
  Status loadImage(const format::Variant &variant);

  const Driver &driver;
  const Package &package;
  int major, minor;
  const LogSink &log;
  CodeModule code;
  std::map<const format::Variant *, ModuleHandle> loaded;
  std::set<const format::Variant *> refused; ///< by the driver
};

} // namespace tcc::runtime::cuda

Status CudaLoader::loadImage(const format::Variant &variant) {
  Result<Memory> bytes = package.readSection(variant.image());
  if (!bytes.ok())
    return bytes.takeStatus();
  if (isPtx(variant)) {
    std::string text(reinterpret_cast<const char *>(bytes->data()),
                     bytes->size());
    return loadModule(driver, text.c_str(), describe(package, variant),
                      code.modules);
  }
  if (!isWholeCubin(bytes->span()))
    return makeError(Code::BadData, "the code for ",
                     variant.cpu()->string_view(), " of package '",
                     package.path(), "' is no cubin");
  return loadModule(driver, bytes->data(), describe(package, variant),
                    code.modules);
}

Status CudaLoader::loadOnce(const format::Variant &variant) {
  if (loaded.contains(&variant))
    return Status();
  Status status = loadImage(variant);
  if (status.ok())
    loaded[&variant] = code.modules.back();
  return status;
}

Result<const format::Variant *> CudaLoader::choose(const Variants &variants) {
  const format::Variant *cubin = findCubin(variants, major, minor);
  const format::Variant *ptx = findPtx(variants);
  if (!cubin && !ptx)
    return makeError(Code::Device, "package '", package.path(),
                     "' has no code for this device, an sm_", major, minor,
                     ", only: ", list(variants));
  if (cubin && !refused.contains(cubin)) {
    Status status = loadOnce(*cubin);
    if (status.ok())
      return cubin;
    if (status.code() != Code::Device || !ptx)
      return status;
    // A driver is older than the cubin, say.
    log(LogLevel::Warning,
        concat(status.message(), "; its PTX is compiled instead"));
    refused.insert(cubin);
  }
  if (Status status = loadOnce(*ptx); !status.ok())
    return status;
  return ptx;
}

Status CudaLoader::loadKernel(uint32_t index) {
  const format::Program &program = package.program();
  const format::Kernel &described = *program.kernels()->Get(index);
  Kernel &kernel = code.functions[index];
  kernel.threads = described.threads();
  if (kernel.threads == 0)
    return Status();
  Result<const format::Variant *> chosen = choose(findCode(program, index));
  if (!chosen.ok())
    return chosen.takeStatus();
  return findFunction(driver, loaded.at(*chosen), described,
                      describe(package, **chosen), kernel);
}

Result<CodeModule> CudaLoader::load() {
  const auto *kernels = package.program().kernels();
  code.functions.resize(kernels ? kernels->size() : 0);
  for (uint32_t i = 0; i < code.functions.size(); ++i)
    if (Status status = loadKernel(i); !status.ok())
      return status;
  return std::move(code);
}

Result<CodeModule> CodeModule::loadCuda(const Driver &driver,
                                        const Package &package, int major,
                                        int minor, const LogSink &log) {
  return CudaLoader(driver, package, major, minor, log).load();
}

//===----------------------------------------------------------------------===//
// Emulated
//===----------------------------------------------------------------------===//

static void countParameters(const format::Entry &entry,
                            std::vector<ModuleKernel> &kernels) {
  forEachLaunch(*entry.body(), [&](const format::Launch &launch) {
    ModuleKernel &kernel = kernels[launch.kernel()];
    kernel.addresses = launch.buffers() ? launch.buffers()->size() : 0;
    kernel.parameters =
        kernel.addresses + (launch.sizes() ? launch.sizes()->size() : 0);
  });
}

/// What the driver is given as an image.
static Result<std::vector<ModuleKernel>>
listKernels(const format::Program &program, const format::Variant &variant,
            const CodeImage &image) {
  std::vector<ModuleKernel> kernels(
      program.kernels() ? program.kernels()->size() : 0);
  for (const format::Entry *entry : *program.entries())
    countParameters(*entry, kernels);
  for (size_t i = 0; i < kernels.size(); ++i) {
    kernels[i].name = program.kernels()->Get(i)->symbol()->c_str();
    uint64_t offset = variant.kernel_offsets()->Get(i);
    kernels[i].function =
        reinterpret_cast<const void *>(image.kernelAt(offset));
    if (!kernels[i].function && offset != format::kNoKernel)
      return makeError(Code::BadData, "kernel '", kernels[i].name,
                       "' lies outside the code");
  }
  return kernels;
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
  CodeModule code(driver);
  Result<Memory> bytes = package.readSection((*variant)->image());
  if (!bytes.ok())
    return bytes.takeStatus();
  Result<CodeImage> mapped = CodeImage::map(bytes->span());
  if (!mapped.ok())
    return mapped.takeStatus();
  code.image = std::move(*mapped);
  auto kernels = listKernels(program, **variant, *code.image);
  if (!kernels.ok())
    return kernels.takeStatus();
  emulated::EmulatedModule module = {kernels->data(), kernels->size()};
  std::string doing = describe(package, **variant);
  if (Status status = loadModule(driver, &module, doing, code.modules);
      !status.ok())
    return status;
  code.functions.resize(kernels->size());
  for (size_t i = 0; i < kernels->size(); ++i) {
    const format::Kernel &described = *program.kernels()->Get(i);
    code.functions[i].threads = described.threads();
    if (described.threads() == 0)
      continue;
    if (Status status = findFunction(driver, code.modules.back(), described,
                                     doing, code.functions[i]);
        !status.ok())
      return status;
  }
  return code;
}
