#include "compiler/codegen/cuda/nvvm/NarrowIndices.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/DLTI/DLTI.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"

using namespace mlir;
using namespace tcc::cuda;

void tcc::cuda::promiseNarrowIndices(ModuleOp module) {
  MLIRContext *context = module.getContext();
  DataLayoutEntryInterface entry = DataLayoutEntryAttr::get(
      IndexType::get(context),
      IntegerAttr::get(IntegerType::get(context, 64), 32));
  module->setAttr(DLTIDialect::kDataLayoutAttrName,
                  DataLayoutSpecAttr::get(context, entry));
}

static bool isParameter(Value x) {
  auto argument = dyn_cast<BlockArgument>(x);
  return argument && isa<func::FuncOp>(argument.getOwner()->getParentOp());
}

/// `x` as an index of 32 bits. The sizes of a launch fit; other values become
/// the nearest index.
static Value narrow(ImplicitLocOpBuilder &b, Value x) {
  Type i32 = b.getI32Type();
  if (!isParameter(x)) {
    auto bound = [&](int32_t value) {
      return b.create<arith::ConstantIntOp>(value, x.getType());
    };
    x = b.create<arith::MaxSIOp>(x, bound(INT32_MIN));
    x = b.create<arith::MinSIOp>(x, bound(INT32_MAX));
  }
  return b.create<arith::TruncIOp>(i32, x);
}

/// What arith.index_cast or index_castui of `x` is where indices are i32.
static Value convert(ImplicitLocOpBuilder &b, Value x, Type to,
                     bool isUnsigned) {
  unsigned width = x.getType().getIntOrFloatBitWidth();
  unsigned wanted = to.getIntOrFloatBitWidth();
  if (width == wanted)
    return x;
  if (width > wanted)
    return wanted == 32 ? narrow(b, x) : b.create<arith::TruncIOp>(to, x);
  if (isUnsigned)
    return b.create<arith::ExtUIOp>(to, x);
  return b.create<arith::ExtSIOp>(to, x);
}

namespace {

class NarrowIndicesPass
    : public PassWrapper<NarrowIndicesPass, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(NarrowIndicesPass)

  StringRef getArgument() const final { return "tcc-narrow-indices"; }
  StringRef getDescription() const final { return "make i32 of indices"; }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<arith::ArithDialect, DLTIDialect>();
  }
  void runOnOperation() final;
};

} // namespace

/// Whether all constants are indices of 32 bits.
static bool hasNarrowConstants(ModuleOp module) {
  WalkResult result = module.walk([](arith::ConstantIndexOp constant) {
    return llvm::isInt<32>(constant.value()) ? WalkResult::advance()
                                             : WalkResult::interrupt();
  });
  return !result.wasInterrupted();
}

void NarrowIndicesPass::runOnOperation() {
  ModuleOp module = getOperation();
  bool isPromised =
      DataLayout(module).getTypeSizeInBits(IndexType::get(&getContext())) == 32;
  module->removeAttr(DLTIDialect::kDataLayoutAttrName);
  if (!isPromised || !hasNarrowConstants(module))
    return;
  Type i32 = IntegerType::get(&getContext(), 32);
  AttrTypeReplacer replacer;
  replacer.addReplacement([&](IndexType) { return i32; });
  replacer.addReplacement([&](IntegerAttr value) -> std::optional<Attribute> {
    if (!value.getType().isIndex())
      return std::nullopt;
    return IntegerAttr::get(i32, value.getValue().trunc(32));
  });
  replacer.recursivelyReplaceElementsIn(module, /*replaceAttrs=*/true,
                                        /*replaceLocs=*/false,
                                        /*replaceTypes=*/true);
  SmallVector<Operation *> casts;
  module.walk([&](Operation *op) {
    if (isa<arith::IndexCastOp, arith::IndexCastUIOp>(op))
      casts.push_back(op);
  });
  for (Operation *cast : casts) {
    ImplicitLocOpBuilder b(cast->getLoc(), cast);
    Value result = convert(b, cast->getOperand(0), cast->getResult(0).getType(),
                           isa<arith::IndexCastUIOp>(cast));
    cast->replaceAllUsesWith(ValueRange(result));
    cast->erase();
  }
}

std::unique_ptr<Pass> tcc::cuda::createNarrowIndicesPass() {
  return std::make_unique<NarrowIndicesPass>();
}
