#include "compiler/codegen/cpu/object/ObjectEmitter.h"
#include "compiler/codegen/cpu/object/ReduceStrength.h"
#include "compiler/codegen/cpu/object/RoundBf16.h"
#include "compiler/codegen/passes/Passes.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVMPass.h"
#include "mlir/Conversion/IndexToLLVM/IndexToLLVM.h"
#include "mlir/Conversion/MathToFuncs/MathToFuncs.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVMPass.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/PassInfo.h"
#include "llvm/PassRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include <mutex>

using namespace mlir;
using namespace tcc::cpu;

static constexpr llvm::StringLiteral kTriple = "x86_64-unknown-linux-gnu";

namespace {

/// LLVM's passes from IR to machine code, but for those that cost more time
/// than they gain here.
class EmissionPasses : public llvm::legacy::PassManager {
public:
  void add(llvm::Pass *pass) override;

private:
  // Where it gains, strength reduction is part of our optimiser's passes.
  static constexpr llvm::StringLiteral omitted[] = {
      "canon-freeze", "loop-reduce", "x86-domain-reassignment"};
};

} // namespace

void tcc::cpu::addLoweringToLLVM(OpPassManager &pm, FunctionSource source) {
  pm.addPass(createConvertMathToFuncs());
  pm.addPass(createConvertMathToLibraryPass(source));
  pm.addPass(createConvertSCFToCFPass());
  pm.addPass(memref::createExpandStridedMetadataPass());
  pm.addPass(createConvertVectorToLLVMPass());
  pm.addPass(createConvertMathToLLVMPass());
  pm.addPass(createFinalizeMemRefToLLVMConversionPass());
  pm.addPass(createConvertIndexToLLVMPass());
  pm.addPass(createArithToLLVMConversionPass());
  ConvertFuncToLLVMPassOptions functions;
  functions.useBarePtrCallConv = true;
  pm.addPass(createConvertFuncToLLVMPass(functions));
  pm.addPass(createConvertControlFlowToLLVMPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
}

static void addLowering(OpPassManager &pm) {
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(createLoopInvariantCodeMotionPass());
  pm.addPass(tcc::createSplitLoopsPass());
  arith::ArithExpandOpsPassOptions expansion;
  expansion.includeBf16 = true;
  pm.addPass(arith::createArithExpandOpsPass(expansion));
  addLoweringToLLVM(pm, FunctionSource::CLibrary);
}

static LogicalResult lowerToLLVMDialect(ModuleOp module) {
  PassManager pm(module.getContext());
  pm.enableVerifier(false);
  addLowering(pm);
  return pm.run(module);
}

void tcc::cpu::registerCodeEmission(DialectRegistry &registry) {
  registry
      .insert<arith::ArithDialect, cf::ControlFlowDialect, func::FuncDialect,
              LLVM::LLVMDialect, math::MathDialect, memref::MemRefDialect,
              scf::SCFDialect, vector::VectorDialect>();
  // A pass manager loads what its passes need; no two threads may.
  OpPassManager pm(ModuleOp::getOperationName());
  addLowering(pm);
  pm.getDependentDialects(registry);
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
}

std::unique_ptr<llvm::TargetMachine>
tcc::cpu::createTargetMachine(llvm::StringRef triple, llvm::StringRef chip,
                              llvm::StringRef features) {
  std::string error;
  const llvm::Target *target =
      llvm::TargetRegistry::lookupTarget(triple.str(), error);
  if (!target)
    return nullptr;
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      triple, chip, features, options, llvm::Reloc::PIC_, std::nullopt,
      llvm::CodeGenOptLevel::Aggressive));
}

static std::unique_ptr<llvm::TargetMachine> createX86Machine(const Cpu &cpu) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
  });
  std::unique_ptr<llvm::TargetMachine> machine =
      createTargetMachine(kTriple, "x86-64", cpu.getFeatureString());
  if (machine)
    machine->Options.FunctionSections = true;
  return machine;
}

/// Says to LLVM what the functions may use and how wide vectors should be.
static void setFunctionAttributes(llvm::Module &module, const Cpu &cpu,
                                  int64_t vectorBytes) {
  std::string width = std::to_string(vectorBytes * 8);
  std::string features = cpu.getFeatureString();
  for (llvm::Function &function : module) {
    function.addFnAttr("target-features", features);
    function.addFnAttr("prefer-vector-width", width);
    function.addFnAttr("min-legal-vector-width", width);
    function.addFnAttr(llvm::Attribute::NoUnwind);
  }
}

void tcc::cpu::optimize(llvm::Module &module, llvm::TargetMachine &machine,
                        const llvm::PipelineTuningOptions &tuning,
                        llvm::function_ref<void(llvm::PassBuilder &)> extend) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder passes(&machine, tuning);
  extend(passes);
  passes.registerModuleAnalyses(modules);
  passes.registerCGSCCAnalyses(components);
  passes.registerFunctionAnalyses(functions);
  passes.registerLoopAnalyses(loops);
  passes.crossRegisterProxies(loops, functions, components, modules);
  passes.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3)
      .run(module, modules);
}

void EmissionPasses::add(llvm::Pass *pass) {
  const llvm::PassInfo *info =
      llvm::PassRegistry::getPassRegistry()->getPassInfo(pass->getPassID());
  if (info && llvm::is_contained(omitted, info->getPassArgument()))
    delete pass;
  else
    PassManager::add(pass);
}

std::string tcc::cpu::getDataLayout(const Cpu &cpu) {
  std::unique_ptr<llvm::TargetMachine> machine = createX86Machine(cpu);
  return machine ? machine->createDataLayout().getStringRepresentation() : "";
}

bool tcc::cpu::emitMachineCode(llvm::Module &module, const Cpu &cpu,
                               int64_t vectorBytes, CodeForm form,
                               llvm::SmallVectorImpl<char> &bytes) {
  std::unique_ptr<llvm::TargetMachine> machine = createX86Machine(cpu);
  if (!machine)
    return false;
  module.setDataLayout(machine->createDataLayout());
  module.setTargetTriple(machine->getTargetTriple().str());
  if (!linkLibrary(module))
    return false;
  if (cpu.hasPairProducts())
    callRounding(module);
  setFunctionAttributes(module, cpu, vectorBytes);
  // Kernels unroll what they want unrolled. LLVM would unroll the short loop
  // that finishes a tile before it is vectorised, and leave it scalar.
  llvm::PipelineTuningOptions tuning;
  tuning.LoopUnrolling = false;
  optimize(module, *machine, tuning, addStrengthReduction);
  inlineRounding(module);

  llvm::raw_svector_ostream stream(bytes);
  EmissionPasses emission;
  auto type = form == CodeForm::Object ? llvm::CodeGenFileType::ObjectFile
                                       : llvm::CodeGenFileType::AssemblyFile;
  if (machine->addPassesToEmitFile(emission, stream, nullptr, type))
    return false;
  emission.run(module);
  return true;
}

FailureOr<llvm::SmallVector<char, 0>> tcc::cpu::emitCode(ModuleOp module,
                                                         const Cpu &cpu,
                                                         int64_t vectorBytes,
                                                         CodeForm form) {
  if (failed(lowerToLLVMDialect(module)))
    return failure();
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> code = translateModuleToLLVMIR(module, context);
  if (!code)
    return module.emitError("cannot be translated to LLVM IR");
  llvm::SmallVector<char, 0> bytes;
  if (!emitMachineCode(*code, cpu, vectorBytes, form, bytes))
    return module.emitError("cannot be compiled for ") << cpu.name;
  return bytes;
}
