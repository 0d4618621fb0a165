#include "compiler/codegen/region/EmitIndices.h"

using namespace mlir;

namespace tcc::codegen {

static Value emitIndex(KernelBuilder &b, AffineExpr index, ValueRange loops);

/// A constant joins the first of several terms, so that both can be hoisted out
/// of the loops of the others.
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
  assert(binary.getKind() == AffineExprKind::Mul && "no index is divided");
  return b.mul(emitIndex(b, binary.getLHS(), loops),
               emitIndex(b, binary.getRHS(), loops));
}

SmallVector<Value> emitIndices(KernelBuilder &b, AffineMap map,
                               ValueRange loops) {
  return llvm::map_to_vector(map.getResults(), [&](AffineExpr index) {
    return emitIndex(b, index, loops);
  });
}

} // namespace tcc::codegen
