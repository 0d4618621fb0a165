#include "compiler/pipeline/GenerateCode.h"

#include "compiler/codegen/cpu/ObjectEmitter.h"
#include "compiler/codegen/cuda/Assembler.h"
#include "compiler/codegen/cuda/DeviceCode.h"
#include "compiler/codegen/cuda/DeviceKernel.h"
#include "compiler/codegen/cuda/Emulation.h"
#include "compiler/codegen/kernel/KernelEmitter.h"
#include "compiler/decisions/Decisions.h"
#include "dialects/exec/ExecOps.h"
#include "runtime/package/Format.h"

#include <atomic>
#include <map>
#include <thread>

using namespace mlir;
using namespace tcc;

using Code = llvm::SmallVector<char, 0>;
using Kernels = SmallVector<exec::KernelOp>;

static Kernels getKernels(ModuleOp module, bool onDevice) {
  Kernels kernels;
  for (auto kernel : module.getOps<exec::KernelOp>())
    if (kernel.getDevice() == onDevice)
      kernels.push_back(kernel);
  return kernels;
}

static FailureOr<OwningOpRef<ModuleOp>> emitLoops(exec::KernelOp kernel,
                                                  const cpu::Cpu &cpu) {
  auto fused = cast<graph::FusedOp>(kernel.getComputation());
  if (kernel.getDevice())
    return cuda::emitKernel(fused, kernel.getSymName());
  codegen::KernelOptions options;
  options.vectorBytes = cpu.getVectorBytes();
  options.hasPairProducts = cpu.hasPairProducts();
  return codegen::emitKernel(fused, kernel.getSymName(), options);
}

static FailureOr<Code> compileKernel(exec::KernelOp kernel, const cpu::Cpu &cpu,
                                     cpu::CodeForm form) {
  FailureOr<OwningOpRef<ModuleOp>> loops = emitLoops(kernel, cpu);
  if (failed(loops))
    return failure();
  return cpu::emitCode(loops->get(), cpu, cpu.getVectorBytes(), form);
}

/// Makes results[i] of inputs[i]; threads take the next one until all are done.
template <typename T, typename Input, typename Make>
static FailureOr<std::vector<T>> makeAll(const Input &inputs, int jobs,
                                         Make make) {
  std::vector<T> results(inputs.size());
  std::atomic<size_t> next = 0;
  std::atomic<bool> ok = true;
  auto work = [&] {
    for (size_t i; ok && (i = next++) < inputs.size();) {
      FailureOr<T> result = make(inputs[i]);
      if (failed(result))
        ok = false;
      else
        results[i] = std::move(*result);
    }
  };
  std::vector<std::jthread> threads;
  for (int i = 1; i < jobs; ++i)
    threads.emplace_back(work);
  work();
  threads.clear();
  if (!ok)
    return failure();
  return results;
}

/// Links the objects of `kernels`; the module's other kernels have no code in
/// the image.
static FailureOr<cpu::Image> link(ModuleOp module, const Kernels &kernels,
                                  ArrayRef<Code> objects) {
  std::vector<llvm::StringRef> bytes;
  std::vector<std::string> names;
  for (exec::KernelOp kernel : kernels)
    names.push_back(kernel.getSymName().str());
  for (const Code &object : objects)
    bytes.emplace_back(object.data(), object.size());
  llvm::Expected<cpu::Image> image = cpu::linkImage(bytes, names);
  if (!image)
    return module.emitError(llvm::toString(image.takeError()));
  std::vector<uint64_t> offsets;
  size_t linked = 0;
  for (auto kernel : module.getOps<exec::KernelOp>()) {
    bool isHere = linked < kernels.size() && kernels[linked] == kernel;
    offsets.push_back(isHere ? image->offsets[linked] : format::kNoKernel);
    linked += isHere;
  }
  image->offsets = std::move(offsets);
  return std::move(*image);
}

// --- The host's kernels

FailureOr<cpu::Image> CodeGenerator::generateImage(const cpu::Cpu &cpu) {
  Kernels kernels = getKernels(module, /*onDevice=*/false);
  auto objects = makeAll<Code>(kernels, jobs, [&](exec::KernelOp kernel) {
    return compileKernel(kernel, cpu, cpu::CodeForm::Object);
  });
  if (failed(objects))
    return failure();
  return link(module, kernels, *objects);
}

// --- The device's kernels

FailureOr<std::string> CodeGenerator::generatePtx(const cuda::Arch &arch) {
  Kernels kernels = getKernels(module, /*onDevice=*/true);
  auto texts = makeAll<std::string>(kernels, jobs, [&](exec::KernelOp kernel) {
    auto loops = emitLoops(kernel, machines.cpus.front());
    return failed(loops) ? FailureOr<std::string>(failure())
                         : cuda::emitPtx(loops->get(), arch);
  });
  if (failed(texts))
    return failure();
  return cuda::joinPtx(*texts, arch);
}

FailureOr<cpu::Image> CodeGenerator::generateEmulation() {
  Kernels kernels = getKernels(module, /*onDevice=*/true);
  bool findsRaces = options.emulation == Emulation::Race;
  auto objects = makeAll<Code>(kernels, jobs, [&](exec::KernelOp kernel) {
    auto loops = emitLoops(kernel, machines.cpus.front());
    return failed(loops) ? FailureOr<Code>(failure())
                         : cuda::emitEmulation(
                               loops->get(), machines.cpus.front(), findsRaces);
  });
  if (failed(objects))
    return failure();
  return link(module, kernels, *objects);
}

static package::CompiledVariant makeDeviceVariant(llvm::StringRef name,
                                                  llvm::StringRef bytes) {
  cpu::Cpu cpu;
  cpu.name = name.str();
  cpu::Image image;
  image.bytes.assign(bytes.begin(), bytes.end());
  return {cpu, std::move(image), "cuda"};
}

/// What the code of each kernel uses, as decisions.
static void record(ModuleOp module, const cuda::Arch &arch,
                   const cuda::Cubin &cubin) {
  DecisionLog log(module, "assemble");
  SymbolTable symbols(module);
  for (const cuda::FunctionResources &function : cubin.functions) {
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

LogicalResult CodeGenerator::assemble(const std::string &oldestPtx,
                                      GeneratedCode &code) {
  if (machines.archs.empty())
    return success();
  auto assembler = cuda::Assembler::find();
  if (!assembler) {
    code.notes.push_back("only PTX in the package, which the driver compiles "
                         "when it is loaded: " +
                         llvm::toString(assembler.takeError()));
    return success();
  }
  std::map<int, std::string> texts = {{machines.ptx.number, oldestPtx}};
  for (const cuda::Arch &arch : machines.archs) {
    std::string &text = texts[arch.getPtxArch().number];
    if (!text.empty())
      continue;
    FailureOr<std::string> ptx = generatePtx(arch.getPtxArch());
    if (failed(ptx))
      return failure();
    text = std::move(*ptx);
  }
  auto make = [&](const cuda::Arch &arch) -> FailureOr<cuda::Cubin> {
    const std::string &text = texts.at(arch.getPtxArch().number);
    auto cubin = (*assembler)->assemble(text, arch);
    if (!cubin)
      return module.emitError(llvm::toString(cubin.takeError()));
    return std::move(*cubin);
  };
  auto cubins = makeAll<cuda::Cubin>(machines.archs, jobs, make);
  if (failed(cubins))
    return failure();
  for (auto [arch, cubin] : llvm::zip_equal(machines.archs, *cubins)) {
    record(module, arch, cubin);
    code.variants.push_back(makeDeviceVariant(
        arch.name, llvm::StringRef(cubin.bytes.data(), cubin.bytes.size())));
  }
  return success();
}

LogicalResult CodeGenerator::generateDeviceCode(GeneratedCode &code) {
  if (machines.hasPtx) {
    FailureOr<std::string> ptx = generatePtx(machines.ptx);
    if (failed(ptx) || failed(assemble(*ptx, code)))
      return failure();
    code.variants.push_back(makeDeviceVariant("ptx", *ptx));
  }
  if (options.emulation == Emulation::None)
    return success();
  FailureOr<cpu::Image> image = generateEmulation();
  if (failed(image))
    return failure();
  code.variants.push_back(
      {machines.cpus.front(), std::move(*image), "emulated"});
  return success();
}

// --- All

FailureOr<GeneratedCode> CodeGenerator::generate(bool computesConstants) {
  GeneratedCode code;
  std::string error;
  std::optional<cpu::Cpu> host = cpu::getHostCpu(error);
  auto runsHere = [&](const cpu::Cpu &cpu) {
    return host && llvm::all_of(cpu.features, [&](const std::string &feature) {
             return host->hasFeature(feature);
           });
  };
  for (const cpu::Cpu &cpu : machines.cpus) {
    FailureOr<cpu::Image> image = generateImage(cpu);
    if (failed(image))
      return failure();
    code.variants.push_back({cpu, std::move(*image)});
    if (computesConstants && !code.host && runsHere(cpu))
      code.host = code.variants.back();
  }
  if (options.target == Target::Cuda && failed(generateDeviceCode(code)))
    return failure();
  if (!computesConstants || code.host)
    return code;
  if (!host)
    return module.emitError("constants cannot be computed here: ") << error;
  FailureOr<cpu::Image> image = generateImage(*host);
  if (failed(image))
    return failure();
  code.host = package::CompiledVariant{*host, std::move(*image)};
  return code;
}

// --- Text

FailureOr<std::string> CodeGenerator::printLoops() {
  std::string text;
  llvm::raw_string_ostream stream(text);
  for (auto kernel : module.getOps<exec::KernelOp>()) {
    FailureOr<OwningOpRef<ModuleOp>> loops =
        emitLoops(kernel, machines.cpus.front());
    if (failed(loops))
      return failure();
    (*loops)->print(stream);
    stream << '\n';
  }
  return text;
}

FailureOr<std::string> CodeGenerator::printAssembly() {
  std::string text;
  for (exec::KernelOp kernel : getKernels(module, /*onDevice=*/false)) {
    FailureOr<Code> code =
        compileKernel(kernel, machines.cpus.front(), cpu::CodeForm::Assembly);
    if (failed(code))
      return failure();
    text.append(code->begin(), code->end());
  }
  return text;
}

FailureOr<std::string> CodeGenerator::print(Artifact artifact) {
  switch (artifact) {
  case Artifact::Kernels:
    return printLoops();
  case Artifact::Ptx:
    return generatePtx(machines.ptx);
  default:
    return printAssembly();
  }
}
