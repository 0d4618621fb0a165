#include "compiler/codegen/cuda/CudaEmitter.h"

#include "compiler/codegen/cache/KernelKey.h"
#include "compiler/codegen/cpu/object/EmitObjects.h"
#include "compiler/codegen/cuda/ExternalDeviceCode.h"
#include "compiler/codegen/cuda/emulation/Emulation.h"
#include "compiler/codegen/cuda/nvvm/Assembler.h"
#include "compiler/codegen/cuda/nvvm/DeviceCode.h"
#include "compiler/decisions/Decisions.h"

#include "tcc/compiler.h"
#include "llvm/ADT/StringExtras.h"
#include <map>

using namespace mlir;

namespace tcc::cuda {

namespace {

class CudaEmitter : public CodeEmitter {
public:
  CudaEmitter(const Target &target, Emulation emulation, const cpu::Cpu &host)
      : target(target), emulation(emulation), host(host) {}

  /// Takes the names of CompileOptions::archs. The problem with them; empty if
  /// there is none.
  std::string readArchs(ArrayRef<std::string> wanted);

  const std::vector<std::string> &getMachines() const override { return names; }
  FailureOr<std::vector<CodeVariant>>
  emit(ModuleOp module, const EmitResources &resources,
       std::vector<std::string> &notes) override;
  FailureOr<std::string> print(ModuleOp module, const EmitResources &resources,
                               Artifact artifact) override;

private:
  FailureOr<OwningOpRef<ModuleOp>> emitLoops(exec::KernelOp kernel,
                                             StringRef name) const;
  FailureOr<std::string> emitText(ModuleOp module, const Arch &arch,
                                  const EmitResources &resources) const;
  FailureOr<std::vector<Cubin>> assemble(ModuleOp module,
                                         const EmitResources &resources,
                                         const std::string &oldestPtx,
                                         const Assembler &assembler) const;
  LogicalResult addCubins(ModuleOp module, const EmitResources &resources,
                          const std::string &oldestPtx,
                          std::vector<CodeVariant> &variants,
                          std::vector<std::string> &notes) const;
  FailureOr<CodeVariant> emulate(ModuleOp module,
                                 const EmitResources &resources) const;

  const Target &target;
  Emulation emulation;
  cpu::Cpu host;
  std::vector<std::string> names; ///< as they were asked for
  std::vector<Arch> archs;        ///< the oldest first
  Arch oldest = {"sm_80", 80};    ///< whose PTX the package has
  bool hasPtx = true;
};

} // namespace

std::string CudaEmitter::readArchs(ArrayRef<std::string> wanted) {
  names = wanted;
  if (names.empty())
    names = {"sm_80", "sm_90", "sm_100"};
  std::string error;
  for (const std::string &name : names) {
    if (name == "ptx" || name == "none")
      continue;
    std::optional<Arch> arch = parseArch(name, error);
    if (!arch)
      return "--arch: " + error;
    archs.push_back(*arch);
  }
  llvm::sort(archs,
             [](const Arch &a, const Arch &b) { return a.number < b.number; });
  if (!archs.empty())
    oldest = archs.front().getPtxArch();
  hasPtx = names != std::vector<std::string>{"none"};
  if (!hasPtx && emulation == Emulation::None)
    return "--arch=none: the package would have no code for its kernels "
           "without --emulate";
  return {};
}

FailureOr<OwningOpRef<ModuleOp>> CudaEmitter::emitLoops(exec::KernelOp kernel,
                                                        StringRef name) const {
  auto fused = cast<graph::FusedOp>(kernel.getComputation());
  return target.emit(fused, name, KernelOptions());
}

static FailureOr<std::optional<ExternalBitcode>>
findExternal(exec::KernelOp kernel, const Arch &arch) {
  return findBitcode(cast<graph::FusedOp>(kernel.getComputation()), arch);
}

// --- PTX ---

/// `text` with each `from` replaced by `to`.
static std::string rename(StringRef text, StringRef from, StringRef to) {
  SmallVector<StringRef> parts;
  text.split(parts, from);
  return llvm::join(parts, to);
}

FailureOr<std::string>
CudaEmitter::emitText(ModuleOp module, const Arch &arch,
                      const EmitResources &resources) const {
  std::string settings = "ptx " + arch.name + " " + digestLibdevice();
  auto emitOne = [&](exec::KernelOp kernel) -> FailureOr<std::string> {
    std::string key = codegen::makeKey(kernel, settings);
    std::string name = "kernel_" + key;
    auto make = [&]() -> FailureOr<codegen::Code> {
      auto external = findExternal(kernel, arch);
      auto loops = emitLoops(kernel, name);
      if (failed(external) || failed(loops))
        return failure();
      FailureOr<std::string> text = emitPtx(loops->get(), arch, *external);
      if (failed(text))
        return failure();
      return codegen::Code(text->begin(), text->end());
    };
    auto code = codegen::findOrMake(resources.cache, key, make);
    if (failed(code))
      return failure();
    return rename({code->data(), code->size()}, name, kernel.getSymName());
  };
  auto texts = codegen::makeAll<std::string>(
      codegen::getKernels(module, target), resources.jobs, emitOne);
  if (failed(texts))
    return failure();
  return joinPtx(*texts, arch);
}

// --- Machine code ---

static CodeVariant makeVariant(const Target &target, StringRef machine,
                               StringRef bytes) {
  return {target.getName().str(),
          machine.str(),
          {},
          std::vector<char>(bytes.begin(), bytes.end()),
          {}};
}

/// What the code of each kernel uses, as decisions.
static void record(ModuleOp module, const Arch &arch, const Cubin &cubin) {
  DecisionLog log(module, "assemble");
  SymbolTable symbols(module);
  for (const FunctionResources &function : cubin.functions) {
    auto kernel = symbols.lookup<exec::KernelOp>(function.name);
    if (!kernel)
      continue;
    auto fused = cast<graph::FusedOp>(kernel.getComputation());
    log.add(kernel, arch.name,
            (function.name + ", " + stringifyKernelKind(fused.getKind())).str(),
            {{"registers", function.registers},
             {"spill_bytes", function.spillBytes},
             {"stack_bytes", function.stackBytes},
             {"shared_bytes", function.sharedBytes}});
  }
}

FailureOr<std::vector<Cubin>>
CudaEmitter::assemble(ModuleOp module, const EmitResources &resources,
                      const std::string &oldestPtx,
                      const Assembler &assembler) const {
  std::map<int, std::string> texts = {{oldest.number, oldestPtx}};
  for (const Arch &arch : archs) {
    std::string &text = texts[arch.getPtxArch().number];
    if (!text.empty())
      continue;
    FailureOr<std::string> ptx = emitText(module, arch.getPtxArch(), resources);
    if (failed(ptx))
      return failure();
    text = std::move(*ptx);
  }
  auto make = [&](const Arch &arch) -> FailureOr<Cubin> {
    const std::string &text = texts.at(arch.getPtxArch().number);
    auto cubin = assembler.assemble(text, arch);
    if (!cubin)
      return module.emitError(llvm::toString(cubin.takeError()));
    return std::move(*cubin);
  };
  return codegen::makeAll<Cubin>(archs, resources.jobs, make);
}

LogicalResult CudaEmitter::addCubins(ModuleOp module,
                                     const EmitResources &resources,
                                     const std::string &oldestPtx,
                                     std::vector<CodeVariant> &variants,
                                     std::vector<std::string> &notes) const {
  if (archs.empty())
    return success();
  auto assembler = Assembler::find();
  if (!assembler) {
    notes.push_back("only PTX in the package, which the driver compiles "
                    "when it is loaded: " +
                    llvm::toString(assembler.takeError()));
    return success();
  }
  auto cubins = assemble(module, resources, oldestPtx, **assembler);
  if (failed(cubins))
    return failure();
  for (auto [arch, cubin] : llvm::zip_equal(archs, *cubins)) {
    record(module, arch, cubin);
    variants.push_back(makeVariant(
        target, arch.name, StringRef(cubin.bytes.data(), cubin.bytes.size())));
  }
  return success();
}

// --- All ---

FailureOr<CodeVariant>
CudaEmitter::emulate(ModuleOp module, const EmitResources &resources) const {
  for (auto kernel : module.getOps<exec::KernelOp>())
    if (auto finished = kernel.getFinishedAttr())
      return kernel.emitError("kernel '")
             << finished.getEntry().getValue()
             << "' of a plugin is PTX or a cubin, which runs on GPUs alone: "
                "--emulate takes LLVM bitcode";
  auto make = [&](exec::KernelOp kernel,
                  StringRef name) -> FailureOr<cpu::Object> {
    auto external = findExternal(kernel, oldest);
    auto loops = emitLoops(kernel, name);
    if (failed(external) || failed(loops))
      return failure();
    return emitEmulation(loops->get(), host, emulation == Emulation::Race,
                         *external);
  };
  StringRef settings =
      emulation == Emulation::Race ? "emulated, checked" : "emulated";
  return cpu::emitImage(module, codegen::getKernels(module, target),
                        host.withoutTileRegisters(), "emulated", settings,
                        resources, make);
}

FailureOr<std::vector<CodeVariant>>
CudaEmitter::emit(ModuleOp module, const EmitResources &resources,
                  std::vector<std::string> &notes) {
  std::vector<CodeVariant> variants;
  if (hasPtx) {
    auto finished = listFinished(module, archs.empty() ? ArrayRef(oldest)
                                                       : ArrayRef(archs));
    if (failed(finished))
      return failure();
    FailureOr<std::string> ptx = emitText(module, oldest, resources);
    if (failed(ptx) ||
        failed(addCubins(module, resources, *ptx, variants, notes)))
      return failure();
    variants.push_back(makeVariant(target, "ptx", *ptx));
    llvm::append_range(variants, *finished);
  }
  if (emulation == Emulation::None)
    return variants;
  FailureOr<CodeVariant> emulated = emulate(module, resources);
  if (failed(emulated))
    return failure();
  variants.push_back(std::move(*emulated));
  return variants;
}

FailureOr<std::string> CudaEmitter::print(ModuleOp module,
                                          const EmitResources &resources,
                                          Artifact artifact) {
  switch (artifact) {
  case Artifact::Kernels:
    return codegen::printLoops(codegen::getKernels(module, target),
                               KernelOptions());
  case Artifact::Ptx:
    return emitText(module, oldest, resources);
  default:
    return std::string();
  }
}

llvm::Expected<std::unique_ptr<CodeEmitter>>
createCudaEmitter(const Target &target, const CompileOptions &options,
                  const cpu::Cpu &host) {
  auto emitter = std::make_unique<CudaEmitter>(target, options.emulation, host);
  std::string problem = emitter->readArchs(options.archs);
  if (!problem.empty())
    return llvm::createStringError(problem);
  return emitter;
}

} // namespace tcc::cuda
