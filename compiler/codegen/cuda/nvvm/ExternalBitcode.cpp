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

namespace tcc::cuda {

static bool isOfDevice(const llvm::Function &function) {
  return function.isIntrinsic() ||
         function.getName().starts_with(cpu::kLibdevicePrefix);
}

/// Makes one function of all that `module` calls from it.
static void inlineCalls(llvm::Module &module) {
  llvm::PassBuilder builder;
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  llvm::AlwaysInlinerPass(/*InsertLifetimeIntrinsics=*/false)
      .run(module, modules);
}

static llvm::Expected<std::unique_ptr<llvm::Module>>
parse(const ExternalBitcode &code, llvm::LLVMContext &context) {
  auto module = llvm::parseBitcodeFile({code.bytes, "code"}, context);
  if (!module)
    return module.takeError();
  std::string problems;
  llvm::raw_string_ostream stream(problems);
  if (llvm::verifyModule(**module, &stream))
    return llvm::createStringError(llvm::StringRef(problems).split('\n').first);
  llvm::StripDebugInfo(**module);
  return module;
}

// --- Checks ------------------------------------------------------------------

namespace {

/// Looks at one module.
class BitcodeChecker {
public:
  BitcodeChecker(llvm::Module &module, const ExternalBitcode &code,
                 unsigned buffers, unsigned numbers)
      : module(module), code(code), buffers(buffers), numbers(numbers) {}

  std::vector<std::string> run();

private:
  void report(const llvm::Twine &problem) { problems.push_back(problem.str()); }
  void checkParameters(const llvm::Function &kernel);
  void checkFunctions();
  void checkGlobals();
  void checkCalls(const llvm::Function &kernel);

  llvm::Module &module;
  const ExternalBitcode &code;
  unsigned buffers, numbers;
  std::vector<std::string> problems;
};

} // namespace

void BitcodeChecker::checkParameters(const llvm::Function &kernel) {
  if (kernel.arg_size() != buffers + numbers)
    return report("has " + llvm::Twine(kernel.arg_size()) +
                  " parameters, expected " + llvm::Twine(buffers) +
                  " pointers and " + llvm::Twine(numbers) + " sizes");
  for (const llvm::Argument &argument : kernel.args()) {
    const llvm::Type &type = *argument.getType();
    bool isBuffer = argument.getArgNo() < buffers;
    bool fits = isBuffer ? type.isPointerTy()
                         : type.isIntegerTy(64) || type.isDoubleTy();
    if (!fits || argument.hasByValAttr())
      report("has parameter " + llvm::Twine(argument.getArgNo()) +
             " of another " + "type than " +
             (isBuffer ? "a pointer" : "an integer of 64 bits or a double"));
  }
}

void BitcodeChecker::checkFunctions() {
  for (const llvm::Function &function : module)
    if (function.isDeclaration() && !isOfDevice(function))
      report("calls '" + function.getName() + "', which no package has");
}

void BitcodeChecker::checkGlobals() {
  uint64_t shared = 0;
  for (const llvm::GlobalVariable &global : module.globals()) {
    bool isShared = global.getAddressSpace() == kSharedSpace;
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
    report("has " + llvm::Twine(shared) + " bytes of shared memory, at most " +
           llvm::Twine(format::kMaxSharedBytes));
}

std::vector<std::string> BitcodeChecker::run() {
  llvm::Function *kernel = module.getFunction(code.symbol);
  if (!llvm::Triple(module.getTargetTriple()).isNVPTX() ||
      module.getDataLayout().getPointerSize() != 8)
    return {"is no bitcode for nvptx64"};
  checkFunctions();
  checkGlobals();
  if (!kernel || kernel->isDeclaration() ||
      !(isKernel(*kernel) ||
        kernel->getCallingConv() == llvm::CallingConv::PTX_Kernel))
    report("has no __global__ function '" + code.symbol + "'");
  else
    checkParameters(*kernel);
  return std::move(problems);
}

// --- Linking -----------------------------------------------------------------

/// What `function` says of its machine and of inlining is forgotten.
static void forgetMachine(llvm::Function &function) {
  for (llvm::StringRef attribute :
       {"target-cpu", "target-features", "frame-pointer", "nvvm.kernel"})
    function.removeFnAttr(attribute);
  for (llvm::Attribute::AttrKind attribute :
       {llvm::Attribute::NoInline, llvm::Attribute::OptimizeNone,
        llvm::Attribute::OptimizeForSize, llvm::Attribute::MinSize})
    function.removeFnAttr(attribute);
  function.setCallingConv(llvm::CallingConv::C);
  for (llvm::User *user : function.users())
    if (auto *call = llvm::dyn_cast<llvm::CallBase>(user))
      if (call->getCalledFunction() == &function)
        call->setCallingConv(llvm::CallingConv::C);
  function.setComdat(nullptr);
  if (function.isDeclaration())
    return;
  function.addFnAttr(llvm::Attribute::AlwaysInline);
  function.setLinkage(llvm::GlobalValue::InternalLinkage);
}

/// Leaves of `module` one function, all its own.
static llvm::Error makeOneFunction(llvm::Module &module,
                                   const ExternalBitcode &code) {
  for (llvm::StringRef name :
       {"nvvm.annotations", "llvm.module.flags", "llvm.ident", "nvvmir.version",
        "llvm.linker.options"})
    if (llvm::NamedMDNode *node = module.getNamedMetadata(name))
      node->eraseFromParent();
  for (llvm::StringRef name : {"llvm.used", "llvm.compiler.used"})
    if (llvm::GlobalVariable *used = module.getGlobalVariable(name, true))
      used->eraseFromParent();
  for (llvm::GlobalVariable &global : module.globals()) {
    global.setLinkage(llvm::GlobalValue::InternalLinkage);
    global.setComdat(nullptr);
  }
  for (llvm::Function &function : module)
    forgetMachine(function);
  llvm::Function *kernel = module.getFunction(code.symbol);
  kernel->setLinkage(llvm::GlobalValue::ExternalLinkage);
  kernel->setName(code.name + "_kernel");
  inlineCalls(module);
  for (llvm::Instruction &instruction : llvm::instructions(*kernel)) {
    auto *call = llvm::dyn_cast<llvm::CallBase>(&instruction);
    if (!call || call->isInlineAsm())
      continue;
    const llvm::Function *callee = call->getCalledFunction();
    if (!callee || !callee->isDeclaration())
      return llvm::createStringError(
          "calls a function of its own through itself or a pointer");
  }
  return llvm::Error::success();
}

/// Gives the function that `module` declares a body: a call of the kernel.
static void defineFunction(llvm::Module &module, const ExternalBitcode &code) {
  llvm::Function *kernel = module.getFunction(code.name + "_kernel");
  llvm::Function *function = module.getFunction(code.name);
  for (llvm::Function *linked : {kernel, function})
    linked->setLinkage(llvm::GlobalValue::InternalLinkage);
  function->addFnAttr(llvm::Attribute::AlwaysInline);
  kernel->addFnAttr(llvm::Attribute::AlwaysInline);
  llvm::IRBuilder<> b(
      llvm::BasicBlock::Create(module.getContext(), "", function));
  llvm::SmallVector<llvm::Value *> operands;
  for (auto [given, wanted] : llvm::zip_equal(function->args(), kernel->args()))
    operands.push_back(wanted.getType()->isDoubleTy()
                           ? b.CreateBitCast(&given, wanted.getType())
                           : static_cast<llvm::Value *>(&given));
  b.CreateCall(kernel, operands);
  b.CreateRetVoid();
}

llvm::Error linkBitcode(llvm::Module &module, const ExternalBitcode &code) {
  auto external = parse(code, module.getContext());
  if (!external)
    return external.takeError();
  if (llvm::Error error = makeOneFunction(**external, code))
    return error;
  (*external)->setTargetTriple(module.getTargetTriple());
  (*external)->setDataLayout(module.getDataLayout());
  if (llvm::Linker::linkModules(module, std::move(*external)))
    return llvm::createStringError("cannot be linked");
  defineFunction(module, code);
  inlineCalls(module);
  return llvm::Error::success();
}

std::vector<std::string> checkBitcode(const ExternalBitcode &code,
                                      unsigned buffers, unsigned numbers) {
  llvm::LLVMContext context;
  auto module = parse(code, context);
  if (!module)
    return {"cannot be read by LLVM 19: " + llvm::toString(module.takeError())};
  std::vector<std::string> problems =
      BitcodeChecker(**module, code, buffers, numbers).run();
  if (problems.empty())
    if (llvm::Error error = makeOneFunction(**module, code))
      problems.push_back(llvm::toString(std::move(error)));
  return problems;
}

} // namespace tcc::cuda
