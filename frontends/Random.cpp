#include "frontends/Random.h"

using namespace mlir;
using tcc::graph::RandomKind;

namespace tcc {

/// The iteration of each loop around, from the outermost on. Loops that are
/// being made are blocks with the iteration for their first argument.
static SmallVector<Value> listIterations(Emitter &emitter) {
  SmallVector<Value> iterations;
  Block *block = emitter.getBuilder().getInsertionBlock();
  while (block && !isa_and_nonnull<func::FuncOp>(block->getParentOp())) {
    if (block->getNumArguments() > 0)
      iterations.insert(iterations.begin(), block->getArgument(0));
    Operation *parent = block->getParentOp();
    block = parent ? parent->getBlock() : nullptr;
  }
  return iterations;
}

Value drawNumbers(Emitter &emitter, RandomKind kind,
                  ArrayRef<AffineExpr> extents, Type elementType, int64_t key) {
  MLIRContext *context = emitter.getContext();
  Type index = IntegerType::get(context, 64);
  Type wide = elementType.isF64() ? elementType : Float32Type::get(context);
  Value zero = emitter.constant(0, index), step = zero;
  // An odd factor, so that few iterations have the same number.
  for (Value iteration : listIterations(emitter))
    step = emitter.add(emitter.mul(step, emitter.constant(2654435761, index)),
                       iteration);
  Value numbers = emitter.create<graph::RandomOp>(
      {zero, step},
      {emitter.attr("kind", graph::RandomKindAttr::get(context, kind)),
       emitter.attr("key", key)},
      graph::makeTensorType(graph::Extents(extents), wide));
  return emitter.cast(numbers, elementType);
}

Value drawBernoulli(Emitter &emitter, Value p, int64_t key) {
  if (!p)
    return nullptr;
  bool isWide = emitter.elementType(p).isF64();
  Type type =
      isWide ? emitter.elementType(p) : Float32Type::get(emitter.getContext());
  Value numbers =
      drawNumbers(emitter, RandomKind::uniform, emitter.extents(p), type, key);
  return emitter.compare(graph::CompareKind::lt, numbers,
                         emitter.cast(p, type));
}

Value drawClasses(Emitter &emitter, Value scores, AffineExpr count,
                  int64_t key) {
  if (!scores || emitter.rank(scores) != 2)
    return emitter.fail("scores [rows, classes] are expected");
  graph::Extents extents = emitter.extents(scores);
  extents.insert(extents.begin() + 1, count);
  Type f32 = Float32Type::get(emitter.getContext());
  Value numbers = drawNumbers(emitter, RandomKind::uniform, extents, f32, key);
  auto negateLog = [&](Value x) {
    return emitter.create<graph::NegOp>(emitter.create<graph::LogOp>(x));
  };
  Value noise = negateLog(negateLog(numbers));
  Value noisy =
      emitter.add(emitter.unsqueeze(emitter.cast(scores, f32), {1}), noise);
  return emitter.create<graph::ArgReduceOp>(
      noisy,
      {emitter.attr("kind", graph::ReduceKindAttr::get(emitter.getContext(),
                                                       graph::ReduceKind::max)),
       emitter.attr("axis", int64_t(2))});
}

} // namespace tcc
