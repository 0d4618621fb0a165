#include "compiler/codegen/cuda/nvvm/DeviceModule.h"
#include "compiler/codegen/cpu/object/ObjectEmitter.h"
#include "compiler/codegen/cuda/nvvm/LowerGpuOps.h"
#include "compiler/codegen/cuda/nvvm/NarrowIndices.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/IR/CallingConv.h"

using namespace mlir;
using namespace tcc::cuda;

namespace {

/// Expands what neither LLVM's device nor its host code has as one op.
class ExpandDeviceOpsPass
    : public PassWrapper<ExpandDeviceOpsPass, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ExpandDeviceOpsPass)

  explicit ExpandDeviceOpsPass(Bf16Conversions conversions)
      : conversions(conversions) {}

  StringRef getArgument() const final { return "tcc-expand-device-ops"; }
  StringRef getDescription() const final {
    return "expand ops that are no instructions";
  }

  void runOnOperation() final {
    RewritePatternSet patterns(&getContext());
    arith::populateCeilFloorDivExpandOpsPatterns(patterns);
    if (conversions == Bf16Conversions::integers)
      arith::populateExpandBFloat16Patterns(patterns);
    if (failed(
            applyPatternsAndFoldGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }

private:
  Bf16Conversions conversions;
};

/// Makes integers of bf16 values, which are only moved any more: LLVM would
/// convert them to f32 and back by calls.
class MoveBf16AsIntegersPass
    : public PassWrapper<MoveBf16AsIntegersPass, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(MoveBf16AsIntegersPass)

  StringRef getArgument() const final { return "tcc-move-bf16-as-integers"; }
  StringRef getDescription() const final {
    return "make integers of bf16 values";
  }
  void runOnOperation() final;
};

} // namespace

static bool isBF16(Value value) {
  return getElementTypeOrSelf(value.getType()).isBF16();
}

void MoveBf16AsIntegersPass::runOnOperation() {
  Type i16 = IntegerType::get(&getContext(), 16);
  AttrTypeReplacer replacer;
  replacer.addReplacement([&](BFloat16Type) { return i16; });
  replacer.addReplacement([&](FloatAttr value) -> std::optional<Attribute> {
    if (!value.getType().isBF16())
      return std::nullopt;
    return IntegerAttr::get(i16, value.getValue().bitcastToAPInt());
  });
  replacer.addReplacement(
      [&](DenseElementsAttr values) -> std::optional<Attribute> {
        if (!values.getElementType().isBF16())
          return std::nullopt;
        return values.bitcast(i16);
      });
  SmallVector<Operation *> users;
  getOperation().walk([&](Operation *op) {
    if (llvm::any_of(op->getOperands(), isBF16) ||
        llvm::any_of(op->getResults(), isBF16))
      users.push_back(op);
  });
  replacer.recursivelyReplaceElementsIn(getOperation(), /*replaceAttrs=*/true,
                                        /*replaceLocs=*/false,
                                        /*replaceTypes=*/true);
  // What moves values takes integers as well; what computes does not.
  for (Operation *op : users)
    if (failed(verify(op, /*verifyRecursively=*/false))) {
      op->emitError("the emulation has no arithmetic on bf16");
      return signalPassFailure();
    }
}

void tcc::cuda::addDeviceLowering(OpPassManager &pm,
                                  Bf16Conversions conversions) {
  pm.addPass(createLowerGpuOpsPass());
  pm.addPass(createNarrowIndicesPass());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(createLoopInvariantCodeMotionPass());
  pm.addPass(std::make_unique<ExpandDeviceOpsPass>(conversions));
  cpu::addLoweringToLLVM(pm, cpu::FunctionSource::Libdevice);
  if (conversions == Bf16Conversions::integers)
    pm.addPass(std::make_unique<MoveBf16AsIntegersPass>());
}

std::unique_ptr<llvm::Module>
tcc::cuda::translateDeviceModule(ModuleOp module, llvm::LLVMContext &context,
                                 llvm::StringRef dataLayout,
                                 Bf16Conversions conversions) {
  PassManager pm(module.getContext());
  pm.enableVerifier(false);
  addDeviceLowering(pm, conversions);
  if (failed(pm.run(module)))
    return nullptr;
  // Loads and stores without an alignment take that of the layout.
  module->setAttr(LLVM::LLVMDialect::getDataLayoutAttrName(),
                  StringAttr::get(module.getContext(), dataLayout));
  std::unique_ptr<llvm::Module> code = translateModuleToLLVMIR(module, context);
  if (!code)
    module.emitError("cannot be translated to LLVM IR");
  return code;
}

bool tcc::cuda::isKernel(const llvm::Function &function) {
  const llvm::NamedMDNode *annotations =
      function.getParent()->getNamedMetadata("nvvm.annotations");
  return annotations &&
         llvm::any_of(annotations->operands(), [&](const llvm::MDNode *node) {
           auto *name = dyn_cast<llvm::MDString>(node->getOperand(1));
           auto *value = llvm::mdconst::dyn_extract_or_null<llvm::Function>(
               node->getOperand(0));
           return value == &function && name && name->getString() == "kernel";
         });
}
