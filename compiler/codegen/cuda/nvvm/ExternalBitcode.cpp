#include "compiler/codegen/cuda/nvvm/ExternalBitcode.h"
#include "compiler/codegen/cpu/object/Library.h"
#include "compiler/codegen/cuda/nvvm/DeviceModule.h"
#include "runtime/package/Format.h"

#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/IR/CallingConv.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/TargetParser/Triple.h"
#include "llvm/Transforms/IPO/AlwaysInliner.h"

using namespace llvm;

namespace tcc::cuda {

/// NVVM's address spaces.
enum : unsigned { kConstantSpace = 4, kBlockSpace = 3 };

static bool isOfDevice(const Function &function) {
  return function.isIntrinsic() ||
         function.getName().starts_with(cpu::kLibdevicePrefix) ||
         function.getName() == "__nvvm_reflect";
}

/// Makes one function of all that `module` calls from it.
static void inlineCalls(Module &module) {
  PassBuilder builder;
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager components;
  ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  AlwaysInlinerPass(/*InsertLifetimeIntrinsics=*/false).run(module, modules);
}

static Expected<std::unique_ptr<Module>> parse(const ExternalBitcode &code,
                                               LLVMContext &context) {
  auto module = parseBitcodeFile({code.bytes, "code"}, context);
  if (!module)
    return module.takeError();
  std::string problems;
  raw_string_ostream stream(problems);
  if (verifyModule(**module, &stream))
    return createStringError(StringRef(problems).split('\n').first);
  StripDebugInfo(**module);
  return module;
}

// --- Checks ------------------------------------------------------------------

namespace {

/// Looks at one module.
class BitcodeChecker {
public:
  BitcodeChecker(Module &module, const ExternalBitcode &code, unsigned buffers,
                 unsigned numbers)
      : module(module), code(code), buffers(buffers), numbers(numbers) {}

  std::vector<std::string> run();

private:
  void report(const Twine &problem) { problems.push_back(problem.str()); }
  void checkParameters(const Function &kernel);
  void checkFunctions();
  void checkGlobals();
  void checkCalls(const Function &kernel);

  Module &module;
  const ExternalBitcode &code;
  unsigned buffers, numbers;
  std::vector<std::string> problems;
};

} // namespace

void BitcodeChecker::checkParameters(const Function &kernel) {
  if (kernel.arg_size() != buffers + numbers)
    return report("has " + Twine(kernel.arg_size()) + " parameters, expected " +
                  Twine(buffers) + " pointers and " + Twine(numbers) +
                  " sizes");
  for (const Argument &argument : kernel.args()) {
    const Type &type = *argument.getType();
    bool isBuffer = argument.getArgNo() < buffers;
    bool fits = isBuffer ? type.isPointerTy()
                         : type.isIntegerTy(64) || type.isDoubleTy();
    if (!fits || argument.hasByValAttr())
      report("has parameter " + Twine(argument.getArgNo()) + " of another " +
             "type than " +
             (isBuffer ? "a pointer" : "an integer of 64 bits or a double"));
  }
}

void BitcodeChecker::checkFunctions() {
  for (const Function &function : module)
    if (function.isDeclaration() && !isOfDevice(function))
      report("calls '" + function.getName() + "', which no package has");
}

void BitcodeChecker::checkGlobals() {
  uint64_t shared = 0;
  for (const GlobalVariable &global : module.globals()) {
    bool isShared = global.getAddressSpace() == kBlockSpace;
    if (isShared)
      shared += module.getDataLayout().getTypeAllocSize(global.getValueType());
    if (global.getName() == "llvm.global_ctors" ||
        global.getName() == "llvm.global_dtors")
      report("has constructors or destructors");
    else if (global.getName().starts_with("llvm."))
      continue;
    else if (isShared ? !global.hasInitializer() : global.isDeclaration())
      report("has '" + global.getName() + "', whose size or place it leaves " +
             "open");
    else if (!isShared && !global.isConstant())
      report("has '" + global.getName() +
             "', which holds state: kernels keep none");
  }
  if (shared > format::kMaxSharedBytes)
    report("has " + Twine(shared) + " bytes of shared memory, at most " +
           Twine(format::kMaxSharedBytes));
}

std::vector<std::string> BitcodeChecker::run() {
  Function *kernel = module.getFunction(code.symbol);
  if (!Triple(module.getTargetTriple()).isNVPTX() ||
      module.getDataLayout().getPointerSize() != 8)
    return {"is no bitcode for nvptx64"};
  checkFunctions();
  checkGlobals();
  if (!kernel || kernel->isDeclaration() ||
      !(isKernel(*kernel) ||
        kernel->getCallingConv() == CallingConv::PTX_Kernel))
    report("has no __global__ function '" + code.symbol + "'");
  else
    checkParameters(*kernel);
  return std::move(problems);
}

// --- Linking -----------------------------------------------------------------

/// What `function` says of its machine and of inlining is forgotten.
static void forgetMachine(Function &function) {
  for (StringRef attribute :
       {"target-cpu", "target-features", "frame-pointer", "nvvm.kernel"})
    function.removeFnAttr(attribute);
  for (Attribute::AttrKind attribute :
       {Attribute::NoInline, Attribute::OptimizeNone,
        Attribute::OptimizeForSize, Attribute::MinSize})
    function.removeFnAttr(attribute);
  function.setCallingConv(CallingConv::C);
  function.setComdat(nullptr);
  if (function.isDeclaration())
    return;
  function.addFnAttr(Attribute::AlwaysInline);
  function.setLinkage(GlobalValue::InternalLinkage);
}

/// Leaves of `module` one function, all its own.
static Error makeOneFunction(Module &module, const ExternalBitcode &code) {
  for (StringRef name : {"nvvm.annotations", "llvm.module.flags", "llvm.ident",
                         "nvvmir.version", "llvm.linker.options"})
    if (NamedMDNode *node = module.getNamedMetadata(name))
      node->eraseFromParent();
  for (StringRef name : {"llvm.used", "llvm.compiler.used"})
    if (GlobalVariable *used = module.getGlobalVariable(name, true))
      used->eraseFromParent();
  for (GlobalVariable &global : module.globals()) {
    global.setLinkage(GlobalValue::InternalLinkage);
    global.setComdat(nullptr);
  }
  for (Function &function : module)
    forgetMachine(function);
  Function *kernel = module.getFunction(code.symbol);
  kernel->setLinkage(GlobalValue::ExternalLinkage);
  kernel->setName(code.name + "_kernel");
  inlineCalls(module);
  for (Instruction &instruction : instructions(*kernel)) {
    auto *call = dyn_cast<CallBase>(&instruction);
    if (!call || call->isInlineAsm())
      continue;
    const Function *callee = call->getCalledFunction();
    if (!callee || !callee->isDeclaration())
      return createStringError(
          "calls a function of its own through itself or a pointer");
  }
  return Error::success();
}

/// Gives the function that `module` declares a body: a call of the kernel.
static void defineFunction(Module &module, const ExternalBitcode &code) {
  Function *kernel = module.getFunction(code.name + "_kernel");
  Function *function = module.getFunction(code.name);
  for (Function *linked : {kernel, function})
    linked->setLinkage(GlobalValue::InternalLinkage);
  function->addFnAttr(Attribute::AlwaysInline);
  kernel->addFnAttr(Attribute::AlwaysInline);
  IRBuilder<> b(BasicBlock::Create(module.getContext(), "", function));
  SmallVector<Value *> operands;
  for (auto [given, wanted] : zip_equal(function->args(), kernel->args()))
    operands.push_back(wanted.getType()->isDoubleTy()
                           ? b.CreateBitCast(&given, wanted.getType())
                           : static_cast<Value *>(&given));
  b.CreateCall(kernel, operands);
  b.CreateRetVoid();
}

Error linkBitcode(Module &module, const ExternalBitcode &code) {
  auto external = parse(code, module.getContext());
  if (!external)
    return external.takeError();
  if (Error error = makeOneFunction(**external, code))
    return error;
  (*external)->setTargetTriple(module.getTargetTriple());
  (*external)->setDataLayout(module.getDataLayout());
  if (Linker::linkModules(module, std::move(*external)))
    return createStringError("cannot be linked");
  defineFunction(module, code);
  inlineCalls(module);
  return Error::success();
}

std::vector<std::string> checkBitcode(const ExternalBitcode &code,
                                      unsigned buffers, unsigned numbers) {
  LLVMContext context;
  auto module = parse(code, context);
  if (!module)
    return {"cannot be read by LLVM 19: " + toString(module.takeError())};
  std::vector<std::string> problems =
      BitcodeChecker(**module, code, buffers, numbers).run();
  if (problems.empty())
    if (Error error = makeOneFunction(**module, code))
      problems.push_back(toString(std::move(error)));
  return problems;
}

} // namespace tcc::cuda
