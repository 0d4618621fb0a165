#include "tests/bench/matrix/Jit.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/Transforms/Utils/Cloning.h"

using namespace mlir;
using namespace tcc::bench;

void tcc::bench::registerKernelDialects(DialectRegistry &registry) {
  registry.insert<arith::ArithDialect, func::FuncDialect, scf::SCFDialect,
                  vector::VectorDialect, LLVM::LLVMDialect>();
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
}

static LogicalResult lowerToLLVM(ModuleOp module) {
  PassManager pm(module.getContext());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(createLoopInvariantCodeMotionPass());
  pm.addPass(createConvertSCFToCFPass());
  ConvertVectorToLLVMPassOptions vectorOptions;
  vectorOptions.force32BitVectorIndices = true;
  pm.addPass(createConvertVectorToLLVMPass(vectorOptions));
  pm.addPass(createArithToLLVMConversionPass());
  pm.addPass(createConvertFuncToLLVMPass());
  pm.addPass(createConvertControlFlowToLLVMPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
  return pm.run(module);
}

static void optimize(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder passes(&machine);
  passes.registerModuleAnalyses(modules);
  passes.registerCGSCCAnalyses(components);
  passes.registerFunctionAnalyses(functions);
  passes.registerLoopAnalyses(loops);
  passes.crossRegisterProxies(loops, functions, components, modules);
  passes.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3)
      .run(module, modules);
}

static std::string printAssembly(const llvm::Module &module,
                                 llvm::TargetMachine &machine) {
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager passes;
  std::unique_ptr<llvm::Module> copy = llvm::CloneModule(module);
  if (!machine.addPassesToEmitFile(passes, stream, nullptr,
                                   llvm::CodeGenFileType::AssemblyFile))
    passes.run(*copy);
  return std::string(text);
}

std::unique_ptr<Jit> Jit::compile(ModuleOp module, const std::string &cpu) {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  if (failed(lowerToLLVM(module)))
    return nullptr;
  auto context = std::make_unique<llvm::LLVMContext>();
  std::unique_ptr<llvm::Module> code =
      translateModuleToLLVMIR(module, *context);
  if (!code)
    return nullptr;

  llvm::orc::JITTargetMachineBuilder target{
      llvm::Triple(llvm::sys::getProcessTriple())};
  target.setCPU(cpu);
  target.setCodeGenOptLevel(llvm::CodeGenOptLevel::Aggressive);
  llvm::ExitOnError check("jit: ");
  std::unique_ptr<llvm::TargetMachine> machine =
      check(target.createTargetMachine());
  code->setDataLayout(machine->createDataLayout());
  code->setTargetTriple(machine->getTargetTriple().str());
  for (llvm::Function &function : *code) {
    function.addFnAttr("prefer-vector-width", "512");
    function.addFnAttr("min-legal-vector-width", "512");
    function.addFnAttr("target-cpu", cpu);
  }
  optimize(*code, *machine);

  auto result = std::make_unique<Jit>();
  result->text = printAssembly(*code, *machine);
  result->jit = check(
      llvm::orc::LLJITBuilder().setJITTargetMachineBuilder(target).create());
  check(result->jit->addIRModule(
      llvm::orc::ThreadSafeModule(std::move(code), std::move(context))));
  return result;
}

Jit::~Jit() = default;

void *Jit::lookup(const std::string &name) {
  return llvm::ExitOnError("jit: ")(jit->lookup(name)).toPtr<void *>();
}
