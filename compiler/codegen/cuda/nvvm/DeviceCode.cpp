#include "compiler/codegen/cuda/nvvm/DeviceCode.h"
#include "compiler/codegen/cpu/object/ObjectEmitter.h"
#include "compiler/codegen/cuda/nvvm/DeviceModule.h"
#include "compiler/codegen/cuda/nvvm/Toolkit.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/BLAKE3.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/IPO/Internalize.h"
#include <mutex>

using namespace mlir;
using namespace tcc;
using namespace tcc::cuda;

static constexpr llvm::StringLiteral kTriple = "nvptx64-nvidia-cuda";
/// The oldest PTX that has all of sm_90: drivers from CUDA 11.8 on take it.
static constexpr llvm::StringLiteral kPtxVersion = "+ptx78";

void tcc::cuda::registerDeviceCode(DialectRegistry &registry) {
  cpu::registerCodeEmission(registry);
  registry.insert<gpu::GPUDialect>();
  // A pass manager loads what its passes need; no two threads may.
  OpPassManager pm(ModuleOp::getOperationName());
  addDeviceLowering(pm, Bf16Conversions::integers);
  pm.getDependentDialects(registry);
  registerNVVMDialectTranslation(registry);
}

static std::unique_ptr<llvm::TargetMachine>
createTargetMachine(const Arch &arch) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
  return cpu::createTargetMachine(kTriple, arch.name, kPtxVersion);
}

static bool callsLibdevice(const llvm::Module &module) {
  return llvm::any_of(module, [](const llvm::Function &function) {
    return function.isDeclaration() &&
           function.getName().starts_with(cpu::kLibdevicePrefix);
  });
}

/// libdevice asks how precise it must be; LLVM would answer only whether
/// denormals are flushed, and take the approximate square root.
static void askForPrecision(llvm::Module &module) {
  llvm::Function *reflect = module.getFunction("__nvvm_reflect");
  if (!reflect)
    return;
  for (llvm::User *user : llvm::make_early_inc_range(reflect->users())) {
    auto *call = dyn_cast<llvm::CallInst>(user);
    auto *global = call ? dyn_cast<llvm::GlobalVariable>(
                              call->getArgOperand(0)->stripPointerCasts())
                        : nullptr;
    auto *text = global ? dyn_cast_or_null<llvm::ConstantDataSequential>(
                              global->getInitializer())
                        : nullptr;
    if (!text || text->getAsCString() != "__CUDA_PREC_SQRT")
      continue;
    call->replaceAllUsesWith(llvm::ConstantInt::get(call->getType(), 1));
    call->eraseFromParent();
  }
}

static llvm::Expected<std::string> findLibdevice() {
  return findToolkitFile("libdevice", {"nvvm/libdevice/libdevice.10.bc"});
}

std::string tcc::cuda::digestLibdevice() {
  auto path = findLibdevice();
  if (!path) {
    llvm::consumeError(path.takeError());
    return "";
  }
  auto file = llvm::MemoryBuffer::getFile(*path);
  if (!file)
    return "";
  return llvm::toHex(
      llvm::BLAKE3::hash(llvm::arrayRefFromStringRef((*file)->getBuffer())));
}

static llvm::Error linkLibdevice(llvm::Module &module) {
  auto path = findLibdevice();
  if (!path)
    return path.takeError();
  auto buffer = llvm::MemoryBuffer::getFile(*path);
  if (!buffer)
    return llvm::createStringError("cannot read " + *path + ": " +
                                   buffer.getError().message());
  auto library = llvm::parseBitcodeFile(**buffer, module.getContext());
  if (!library)
    return library.takeError();
  (*library)->setTargetTriple(module.getTargetTriple());
  (*library)->setDataLayout(module.getDataLayout());
  auto internalize = [](llvm::Module &linked, const llvm::StringSet<> &names) {
    llvm::internalizeModule(linked, [&](const llvm::GlobalValue &value) {
      return !names.contains(value.getName());
    });
  };
  if (llvm::Linker::linkModules(module, std::move(*library),
                                llvm::Linker::LinkOnlyNeeded, internalize))
    return llvm::createStringError("cannot link " + *path);
  askForPrecision(module);
  return llvm::Error::success();
}

/// The library was compiled for the host: its functions forget that.
static void removeHostAttributes(llvm::Module &module) {
  for (llvm::Function &function : module)
    for (llvm::StringRef attribute :
         {"target-cpu", "target-features", "tune-cpu", "min-legal-vector-width",
          "frame-pointer", "stack-protector-buffer-size"})
      function.removeFnAttr(attribute);
}

/// Names what only this module sees after its first kernel.
static void renameInternals(llvm::Module &module) {
  auto kernel = llvm::find_if(module, isKernel);
  if (kernel == module.end())
    return;
  std::string suffix = ("_" + kernel->getName()).str();
  for (llvm::GlobalValue &value : module.global_values())
    if (value.hasLocalLinkage())
      value.setName(value.getName() + suffix);
}

static void optimize(llvm::Module &module, llvm::TargetMachine &machine) {
  // Lanes of a warp are the vectors; accesses are merged after this.
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = false;
  tuning.SLPVectorization = false;
  cpu::optimize(module, machine, tuning);
}

FailureOr<std::string>
tcc::cuda::emitPtx(ModuleOp module, const Arch &arch,
                   const std::optional<ExternalBitcode> &external) {
  std::unique_ptr<llvm::TargetMachine> machine =
      createTargetMachine(arch.getPtxArch());
  if (!machine)
    return module.emitError("LLVM has no code generation for ") << kTriple;
  llvm::DataLayout layout = machine->createDataLayout();
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> code =
      translateDeviceModule(module, context, layout.getStringRepresentation(),
                            Bf16Conversions::instructions);
  if (!code)
    return failure();
  code->setDataLayout(layout);
  code->setTargetTriple(kTriple);
  if (external)
    if (llvm::Error error = linkBitcode(*code, *external))
      return module.emitError(toString(std::move(error)));
  if (!cpu::linkLibrary(*code))
    return module.emitError("cannot be linked with the function library");
  if (callsLibdevice(*code))
    if (llvm::Error error = linkLibdevice(*code))
      return module.emitError(toString(std::move(error)));
  removeHostAttributes(*code);
  ::optimize(*code, *machine);
  renameInternals(*code);

  llvm::SmallString<0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager emission;
  if (machine->addPassesToEmitFile(emission, stream, nullptr,
                                   llvm::CodeGenFileType::AssemblyFile))
    return module.emitError("cannot be emitted for ") << arch.name;
  emission.run(*code);
  return std::string(text);
}

std::string tcc::cuda::joinPtx(llvm::ArrayRef<std::string> texts,
                               const Arch &arch) {
  constexpr llvm::StringLiteral kHeaderEnd = ".address_size 64\n";
  std::string joined;
  for (llvm::StringRef text : texts) {
    auto [header, body] = text.split(kHeaderEnd);
    if (joined.empty())
      joined = (header + kHeaderEnd).str();
    joined += body;
  }
  if (joined.empty()) // a program without kernels
    joined = (".version 7.8\n.target " + arch.name + "\n" + kHeaderEnd).str();
  return joined;
}
