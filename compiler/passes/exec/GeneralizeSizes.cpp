//===- GeneralizeSizes.cpp - Elementwise kernels of any size --------------===//
#include "compiler/passes/exec/Passes.h"
#include "compiler/target/Target.h"
#include "dialects/exec/ExecOps.h"

#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace tcc::exec;
using namespace tcc::graph;

namespace tcc {

#define GEN_PASS_DEF_GENERALIZESIZESPASS
#include "compiler/passes/exec/Passes.h.inc"

namespace {

using Shape = ArrayRef<int64_t>;

struct GeneralizeSizesPass
    : impl::GeneralizeSizesPassBase<GeneralizeSizesPass> {
  void runOnOperation() override;
};

/// More than tensors of the largest machines have.
constexpr int64_t kMostElements = int64_t(1) << 40;

} // namespace

static bool hasOneElement(Value tensor) {
  auto type = cast<RankedTensorType>(tensor.getType());
  return type.hasStaticShape() && type.getNumElements() == 1;
}

/// All tensors in the kernel.
static SmallVector<Value> listTensors(KernelOp kernel) {
  SmallVector<Value> tensors;
  kernel.getBody().walk([&](Block *block) {
    llvm::append_range(tensors, block->getArguments());
    for (Operation &op : *block)
      llvm::append_range(tensors, op.getResults());
  });
  return tensors;
}

/// The one shape of all `tensors` of several elements; nullopt if there are
/// several shapes, symbolic ones or none.
static std::optional<Shape> findShape(ArrayRef<Value> tensors) {
  std::optional<Shape> shape;
  for (Value tensor : tensors) {
    auto type = cast<RankedTensorType>(tensor.getType());
    if (hasOneElement(tensor))
      continue;
    if (!type.hasStaticShape() || type.getNumElements() == 0 ||
        (shape && *shape != type.getShape()))
      return std::nullopt;
    shape = type.getShape();
  }
  return shape;
}

/// Whether all of `op`'s operands are the same wherever its result is read: one
/// element that the result repeats, along its last axis at most.
static bool repeatsElement(Operation &op) {
  auto loops = dyn_cast<IterationOpInterface>(op);
  if (!loops || op.getNumOperands() == 0)
    return false;
  for (OpOperand &operand : op.getOpOperands()) {
    AffineMap map = loops.getOperandMap(operand.getOperandNumber());
    if (!map ||
        !llvm::all_of(map.getResults(), llvm::IsaPred<AffineConstantExpr>) ||
        map.getNumResults() > 1)
      return false;
  }
  return true;
}

/// Whether element i of each result is made of the elements i of operands and
/// of tensors of one element.
static bool isElementwise(Operation &op) {
  return isa<PointwiseOpInterface>(op) ||
         op.hasTrait<OpTrait::IsTerminator>() ||
         (llvm::all_of(op.getOperands(), hasOneElement) &&
          llvm::all_of(op.getResults(), hasOneElement)) ||
         repeatsElement(op);
}

/// Whether an attribute of `op` has sizes of the module's symbols.
static bool hasSizes(Operation &op) {
  return llvm::any_of(op.getAttrs(), [](NamedAttribute attr) {
    auto map = dyn_cast<AffineMapAttr>(attr.getValue());
    return map && map.getValue().getNumSymbols() > 0;
  });
}

/// Gives the kernel's tensors of several elements one symbolic axis. How many
/// elements they had; nullopt, and nothing is done, if it cannot.
static std::optional<int64_t> generalize(KernelOp kernel, ArrayAttr symbols) {
  auto fused = cast<FusedOp>(kernel.getComputation());
  if (fused.getKind() != KernelKind::pointwise ||
      !getTarget(kernel).getCapabilities().sharesElementwise)
    return std::nullopt;
  SmallVector<Value> tensors = listTensors(kernel);
  std::optional<Shape> shape = findShape(tensors);
  Block &body = fused.getBody().front();
  if (!shape || !llvm::all_of(body, isElementwise) ||
      llvm::any_of(body, hasSizes))
    return std::nullopt;
  int64_t elements = ShapedType::getNumElements(*shape);
  AffineExpr extent = getAffineSymbolExpr(0, kernel.getContext());
  for (Value tensor : tensors)
    if (!hasOneElement(tensor))
      tensor.setType(
          makeTensorType(extent, getElementTypeOrSelf(tensor.getType())));
  kernel.setSymbolsAttr(symbols);
  return elements;
}

void GeneralizeSizesPass::runOnOperation() {
  MLIRContext *context = &getContext();
  auto symbol = SymbolAttr::get(context, StringAttr::get(context, "elements"),
                                1, kMostElements, 1);
  auto symbols = ArrayAttr::get(context, {symbol});
  llvm::StringMap<int64_t> elements;
  for (auto kernel : getOperation().getOps<KernelOp>())
    if (std::optional<int64_t> count = generalize(kernel, symbols))
      elements[kernel.getSymName()] = *count;
  getOperation().walk([&](LaunchOp launch) {
    auto found = elements.find(launch.getKernel());
    if (found != elements.end())
      launch.setBindings(
          makeSizeMap(getAffineConstantExpr(found->second, context), context));
  });
}

} // namespace tcc
