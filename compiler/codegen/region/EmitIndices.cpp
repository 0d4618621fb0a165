#include "compiler/codegen/region/EmitIndices.h"

using namespace mlir;

namespace tcc::codegen {

static Value emitIndex(KernelBuilder &b, AffineExpr index, ValueRange loops);

/// A constant joins the first of several terms: what outer loops say alone then
/// leaves inner ones.
static Value emitSum(KernelBuilder &b, AffineBinaryOpExpr sum,
                     ValueRange loops) {
  auto constant = dyn_cast<AffineConstantExpr>(sum.getRHS());
  auto inner = dyn_cast<AffineBinaryOpExpr>(sum.getLHS());
  if (constant && inner && inner.getKind() == AffineExprKind::Add)
    return b.add(emitIndex(b, inner.getLHS() + constant, loops),
                 emitIndex(b, inner.getRHS(), loops));
  Value first = emitIndex(b, sum.getLHS(), loops);
  if (constant && constant.getValue() < 0)
    return b.sub(first, b.index(-constant.getValue()));
  return b.add(first, emitIndex(b, sum.getRHS(), loops));
}

static Value emitIndex(KernelBuilder &b, AffineExpr index, ValueRange loops) {
  if (auto loop = dyn_cast<AffineDimExpr>(index))
    return loops[loop.getPosition()];
  if (auto constant = dyn_cast<AffineConstantExpr>(index))
    return b.index(constant.getValue());
  auto binary = cast<AffineBinaryOpExpr>(index);
  if (binary.getKind() == AffineExprKind::Add)
    return emitSum(b, binary, loops);
  Value x = emitIndex(b, binary.getLHS(), loops);
  Value y = emitIndex(b, binary.getRHS(), loops);
  if (binary.getKind() == AffineExprKind::Mul)
    return b.mul(x, y);
  if (binary.getKind() == AffineExprKind::Mod)
    return b.rem(x, y);
  assert(binary.getKind() == AffineExprKind::FloorDiv &&
         "no index is rounded up");
  return b.div(x, y);
}

SmallVector<Value> emitIndices(KernelBuilder &b, AffineMap map,
                               ValueRange loops) {
  return llvm::map_to_vector(map.getResults(), [&](AffineExpr index) {
    return emitIndex(b, index, loops);
  });
}

} // namespace tcc::codegen
