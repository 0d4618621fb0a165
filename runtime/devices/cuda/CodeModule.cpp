#include "runtime/devices/cuda/CodeModule.h"

#include "runtime/devices/emulated/EmulatedModule.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <elf.h>
#include <string>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::runtime::cuda;
using emulated::ModuleKernel;

static constexpr uint16_t kCudaMachine = 190; // EM_CUDA

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

/// A cubin runs on devices of its major version and a minor one not below its
/// own; null if there is none, nor PTX.
static const format::Variant *choose(const format::Program &program, int major,
                                     int minor) {
  const format::Variant *best = nullptr;
  for (const format::Variant *variant : *program.variants()) {
    if (variant->target()->string_view() != "cuda")
      continue;
    int arch = archOf(*variant);
    bool runs = arch / 10 == major && arch % 10 <= minor;
    if (!runs && variant->cpu()->string_view() != "ptx")
      continue;
    if (!best || arch > archOf(*best))
      best = variant;
  }
  return best;
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

/// Whether the tables of a cubin lie inside it: the driver is not told how long
/// it is.
static bool isWhole(std::span<const std::byte> cubin) {
  Elf64_Ehdr header;
  if (cubin.size() < sizeof(header))
    return false;
  std::memcpy(&header, cubin.data(), sizeof(header));
  auto fits = [&](uint64_t offset, uint64_t bytes) {
    return offset <= cubin.size() && bytes <= cubin.size() - offset;
  };
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) ||
      header.e_machine != kCudaMachine ||
      header.e_shentsize != sizeof(Elf64_Shdr) ||
      (header.e_phnum && header.e_phentsize != sizeof(Elf64_Phdr)) ||
      !fits(header.e_shoff, header.e_shnum * sizeof(Elf64_Shdr)) ||
      !fits(header.e_phoff, header.e_phnum * sizeof(Elf64_Phdr)))
    return false;
  for (size_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    std::memcpy(&section,
                cubin.data() + header.e_shoff + i * sizeof(Elf64_Shdr),
                sizeof(section));
    if (section.sh_type != SHT_NOBITS && section.sh_type != SHT_NULL &&
        !fits(section.sh_offset, section.sh_size))
      return false;
  }
  return true;
}

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

Result<CodeModule> CodeModule::loadCuda(const Driver &driver,
                                        const Package &package, int major,
                                        int minor) {
  const format::Program &program = package.program();
  const format::Variant *variant = choose(program, major, minor);
  if (!variant)
    return makeError(Code::Device, "package '", package.path(),
                     "' has no code for this device, an sm_", major, minor,
                     ", only: ", listCode(program));
  Result<Memory> bytes = package.readSection(variant->image());
  if (!bytes.ok())
    return bytes.takeStatus();
  bool isText = variant->cpu()->string_view() == "ptx";
  if (!isText && !isWhole(bytes->span()))
    return makeError(Code::BadData, "the code for ",
                     variant->cpu()->string_view(), " of package '",
                     package.path(), "' is no cubin");
  CodeModule code(driver, *variant);
  std::string text;
  if (isText)
    text.assign(reinterpret_cast<const char *>(bytes->data()), bytes->size());
  const void *image =
      isText ? static_cast<const void *>(text.c_str()) : bytes->data();
  if (Status status = code.load(image, package); !status.ok())
    return status;
  return code;
}

static void countParameters(const format::Block &block,
                            std::vector<ModuleKernel> &kernels) {
  for (const format::Command *command : *block.commands()) {
    if (const format::Launch *launch = command->action_as_Launch()) {
      ModuleKernel &kernel = kernels[launch->kernel()];
      kernel.addresses = launch->buffers() ? launch->buffers()->size() : 0;
      kernel.parameters =
          kernel.addresses + (launch->sizes() ? launch->sizes()->size() : 0);
    }
    if (const format::If *branch = command->action_as_If()) {
      countParameters(*branch->then_block(), kernels);
      countParameters(*branch->else_block(), kernels);
    }
    if (const format::Loop *loop = command->action_as_Loop())
      countParameters(*loop->body(), kernels);
  }
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
    countParameters(*entry->body(), kernels);
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
