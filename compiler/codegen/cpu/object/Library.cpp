#include "compiler/codegen/cpu/object/Library.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/IR/Module.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;
using namespace tcc::cpu;

// Laid into the data section by LibraryData.S.
extern "C" const char tccLibraryBitcode[], tccLibraryBitcodeEnd[];
extern "C" const char tccLibraryObject[], tccLibraryObjectEnd[];

llvm::StringRef tcc::cpu::getLibraryBitcode() {
  return {tccLibraryBitcode, size_t(tccLibraryBitcodeEnd - tccLibraryBitcode)};
}

llvm::StringRef tcc::cpu::getLibraryObject() {
  return {tccLibraryObject, size_t(tccLibraryObjectEnd - tccLibraryObject)};
}

bool tcc::cpu::hasLibraryFunction(llvm::StringRef name) {
  static const llvm::StringSet<> names = [] {
    using llvm::object::SymbolRef;
    llvm::StringSet<> found;
    auto object = llvm::cantFail(llvm::object::ELF64LEObjectFile::create(
        {getLibraryObject(), "library"}));
    for (const llvm::object::ELFSymbolRef symbol : object.symbols())
      if (llvm::cantFail(symbol.getFlags()) & SymbolRef::SF_Global)
        found.insert(llvm::cantFail(symbol.getName()));
    return found;
  }();
  return names.contains(name);
}

static constexpr StringLiteral kOwnPrefix = "tcc_";

/// Most kernels call none.
static bool callsOwnFunction(const llvm::Module &module) {
  return llvm::any_of(module, [](const llvm::Function &function) {
    return function.isDeclaration() &&
           function.getName().starts_with(kOwnPrefix);
  });
}

bool tcc::cpu::linkLibrary(llvm::Module &module) {
  if (!callsOwnFunction(module))
    return true;
  auto library = llvm::getLazyBitcodeModule(
      llvm::MemoryBufferRef(getLibraryBitcode(), "library"),
      module.getContext());
  if (!library) {
    llvm::consumeError(library.takeError());
    return false;
  }
  (*library)->setTargetTriple(module.getTargetTriple());
  (*library)->setDataLayout(module.getDataLayout());
  auto internalize = [](llvm::Module &linked, const llvm::StringSet<> &names) {
    for (const auto &name : names)
      if (llvm::Function *function = linked.getFunction(name.first()))
        function->setLinkage(llvm::GlobalValue::InternalLinkage);
  };
  return !llvm::Linker::linkModules(module, std::move(*library),
                                    llvm::Linker::LinkOnlyNeeded, internalize);
}

namespace {

/// An op and its functions for f32 and f64.
struct LibraryFunction {
  StringLiteral op, f32, f64;
};

constexpr LibraryFunction kFunctions[] = {
    {"math.exp", "tcc_exp_f32", "exp"},
    {"math.expm1", "tcc_expm1_f32", "expm1"},
    {"math.log", "tcc_log_f32", "log"},
    {"math.log1p", "tcc_log1p_f32", "log1p"},
    {"math.tanh", "tcc_tanh_f32", "tanh"},
    {"math.erf", "tcc_erf_f32", "erf"},
    {"math.exp2", "exp2f", "exp2"},
    {"math.log2", "log2f", "log2"},
    {"math.sin", "sinf", "tcc_sin_f64"},
    {"math.cos", "cosf", "tcc_cos_f64"},
    {"math.tan", "tanf", "tcc_tan_f64"},
    {"math.asin", "asinf", "asin"},
    {"math.acos", "acosf", "acos"},
    {"math.atan", "atanf", "atan"},
    {"math.atan2", "atan2f", "atan2"},
    {"math.sinh", "sinhf", "sinh"},
    {"math.cosh", "coshf", "cosh"},
    {"math.asinh", "asinhf", "asinh"},
    {"math.acosh", "acoshf", "acosh"},
    {"math.atanh", "atanhf", "atanh"},
    {"math.cbrt", "cbrtf", "cbrt"},
    {"math.powf", "powf", "pow"},
    {"arith.remf", "fmodf", "fmod"},
};

/// Ops that LLVM turns into instructions (or that a later pass expands).
constexpr StringLiteral kInstructions[] = {
    "math.absf",      "math.absi", "math.ceil",  "math.copysign", "math.ctlz",
    "math.ctpop",     "math.cttz", "math.floor", "math.fma",      "math.ipowi",
    "math.roundeven", "math.sqrt", "math.trunc"};

class ConvertMathToLibraryPass
    : public PassWrapper<ConvertMathToLibraryPass, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ConvertMathToLibraryPass)

  explicit ConvertMathToLibraryPass(FunctionSource source) : source(source) {}

  StringRef getArgument() const final { return "tcc-convert-math-to-library"; }
  StringRef getDescription() const final {
    return "replace math ops by calls of library functions";
  }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<func::FuncDialect>();
  }

  void runOnOperation() final {
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) {
      StringRef name = op->getName().getStringRef();
      if (find(name) || (isa_and_present<math::MathDialect>(op->getDialect()) &&
                         !llvm::is_contained(kInstructions, name)))
        ops.push_back(op);
    });
    for (Operation *op : ops)
      if (failed(replace(op)))
        return signalPassFailure();
  }

private:
  static const LibraryFunction *find(StringRef op) {
    auto function = llvm::find_if(
        kFunctions, [&](const LibraryFunction &row) { return row.op == op; });
    return function == std::end(kFunctions) ? nullptr : function;
  }

  LogicalResult replace(Operation *op) {
    Type type = op->getResult(0).getType();
    const LibraryFunction *function = find(op->getName().getStringRef());
    if (!function || !(type.isF32() || type.isF64()))
      return op->emitError("no library function for ")
             << op->getName() << " on " << type;
    OpBuilder builder(op);
    func::FuncOp callee =
        declare(getSymbol(type.isF32() ? function->f32 : function->f64),
                builder.getFunctionType(op->getOperandTypes(), type));
    auto call =
        builder.create<func::CallOp>(op->getLoc(), callee, op->getOperands());
    op->replaceAllUsesWith(call);
    op->erase();
    return success();
  }

  std::string getSymbol(StringRef name) const {
    bool isOwn = name.starts_with(kOwnPrefix);
    if (isOwn || source == FunctionSource::CLibrary)
      return name.str();
    return (kLibdevicePrefix + name).str();
  }

  func::FuncOp declare(StringRef name, FunctionType type) {
    ModuleOp module = getOperation();
    if (auto existing = module.lookupSymbol<func::FuncOp>(name))
      return existing;
    OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
    auto function = builder.create<func::FuncOp>(module.getLoc(), name, type);
    function.setPrivate();
    return function;
  }

  FunctionSource source;
};

} // namespace

std::unique_ptr<Pass>
tcc::cpu::createConvertMathToLibraryPass(FunctionSource source) {
  return std::make_unique<ConvertMathToLibraryPass>(source);
}
