//===- GeneralizeSizes.cpp - Kernels of several sizes ---------------------===//
#include "compiler/passes/exec/Passes.h"
#include "compiler/passes/exec/SizeFamilies.h"
#include "compiler/target/Target.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
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
static std::optional<int64_t> generalize(KernelOp kernel) {
  auto fused = cast<FusedOp>(kernel.getComputation());
  if (fused.getKind() != KernelKind::pointwise ||
      !getTarget(kernel).getFixedExtent(KernelKind::pointwise))
    return std::nullopt;
  SmallVector<Value> tensors = listTensors(kernel);
  std::optional<Shape> shape = findShape(tensors);
  Block &body = fused.getBody().front();
  if (!shape || !llvm::all_of(body, isElementwise) ||
      llvm::any_of(body, hasSizes))
    return std::nullopt;
  int64_t elements = ShapedType::getNumElements(*shape);
  MLIRContext *context = kernel.getContext();
  AffineExpr extent = getAffineSymbolExpr(0, context);
  for (Value tensor : tensors)
    if (!hasOneElement(tensor))
      tensor.setType(
          makeTensorType(extent, getElementTypeOrSelf(tensor.getType())));
  auto symbol = SymbolAttr::get(context, StringAttr::get(context, "elements"),
                                1, kMostElements, 1);
  kernel.setSymbolsAttr(ArrayAttr::get(context, {symbol}));
  return elements;
}

static bool areLoopsInOrder(AffineMap map) {
  int64_t last = -1;
  return map && llvm::all_of(map.getResults(), [&](AffineExpr index) {
           auto loop = dyn_cast<AffineDimExpr>(index);
           if (!loop)
             return isa<AffineConstantExpr>(index);
           return int64_t(loop.getPosition()) >
                  std::exchange(last, loop.getPosition());
         });
}

/// Whether loops over op's operands and results walk along memory, and what it
/// computes of an element is the same for all sizes.
static bool walksInOrder(Operation &op) {
  if (isElementwise(op))
    return true;
  auto loops = dyn_cast<IterationOpInterface>(op);
  if (!loops || isa<DecomposableOpInterface>(op))
    return false;
  return llvm::all_of(llvm::seq(op.getNumOperands()),
                      [&](unsigned i) {
                        return areLoopsInOrder(loops.getOperandMap(i));
                      }) &&
         llvm::all_of(llvm::seq(op.getNumResults()), [&](unsigned i) {
           return areLoopsInOrder(loops.getResultMap(i));
         });
}

/// As of Target; nullopt too where loops do not walk along memory.
static std::optional<int64_t> getFixedExtent(KernelOp kernel) {
  auto fused = cast<FusedOp>(kernel.getComputation());
  if (!llvm::all_of(fused.getBody().front(), walksInOrder))
    return std::nullopt;
  return getTarget(kernel).getFixedExtent(fused.getKind());
}

/// Whether ops and target take a kernel with the symbols that it has now.
static bool isPossible(KernelOp kernel) {
  ScopedDiagnosticHandler silence(kernel.getContext(), [](Diagnostic &) {});
  auto fused = cast<FusedOp>(kernel.getComputation());
  return succeeded(verify(kernel)) && succeeded(getTarget(kernel).plan(fused));
}

void GeneralizeSizesPass::runOnOperation() {
  ModuleOp module = getOperation();
  llvm::StringMap<Sizes> bindings; // by kernel
  for (auto kernel : module.getOps<KernelOp>())
    if (std::optional<int64_t> elements = generalize(kernel))
      bindings[kernel.getSymName()] = {*elements};
  for (const SizeFamily &family : findSizeFamilies(module, getFixedExtent))
    for (const Sizes &values : shareBody(family, isPossible))
      for (auto [kernel, value] : llvm::zip_equal(family.kernels, values))
        bindings[KernelOp(kernel).getSymName()].push_back(value);
  module.walk([&](LaunchOp launch) {
    auto found = bindings.find(launch.getKernel());
    if (found == bindings.end())
      return;
    auto values = llvm::map_to_vector(found->second, [&](int64_t value) {
      return getAffineConstantExpr(value, &getContext());
    });
    launch.setBindings(makeSizeMap(values, &getContext()));
  });
}

} // namespace tcc
