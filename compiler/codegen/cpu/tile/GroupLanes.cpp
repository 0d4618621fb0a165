#include "compiler/codegen/cpu/tile/GroupLanes.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include <numeric>

using namespace mlir;

namespace tcc::cpu {

Value GroupLanes::toInputs(KernelBuilder &b, Value channels) const {
  if (groupInputs == groupSize)
    return channels;
  return b.mul(b.div(channels, b.index(groupSize)), b.index(groupInputs));
}

Value GroupLanes::makeMask(KernelBuilder &b, Value count) const {
  auto laneType = VectorType::get(lanes, b.getI32Type());
  SmallVector<int32_t> numbers(lanes);
  std::iota(numbers.begin(), numbers.end(), 0);
  Value iota = b.create<arith::ConstantOp>(
      DenseElementsAttr::get(laneType, ArrayRef<int32_t>(numbers)));
  Value narrow = b.createOrFold<arith::IndexCastOp>(b.getI32Type(), count);
  Value all = b.createOrFold<vector::SplatOp>(laneType, narrow);
  return b.create<arith::CmpIOp>(arith::CmpIPredicate::slt, iota, all);
}

Value GroupLanes::makeInputMask(KernelBuilder &b, Value inside) const {
  if (groupInputs == groupSize)
    return inside ? makeMask(b, inside) : Value();
  return makeMask(b, toInputs(b, inside ? inside : b.index(lanes)));
}

Value GroupLanes::spread(KernelBuilder &b, Value inputs, int64_t number) const {
  if (groupSize == 1)
    return inputs;
  SmallVector<int64_t> sources;
  for (int64_t lane = 0; lane < lanes; ++lane)
    sources.push_back(lane / groupSize * groupInputs + number);
  return b.create<vector::ShuffleOp>(inputs, inputs, sources);
}

void GroupLanes::walk(KernelBuilder &b, Value from, Value to, int64_t divisor,
                      int64_t vectorsAtOnce, Block emit) const {
  auto roundDown = [&](Value step) {
    return b.add(from, b.mul(b.div(b.sub(to, from), step), step));
  };
  Value step = b.index(vectorsAtOnce * lanes), one = b.index(lanes);
  Value blocks = roundDown(step), whole = roundDown(one);
  b.loop(from, blocks, step,
         [&](Value first) { emit(first, vectorsAtOnce, nullptr); });
  if (divisor % (vectorsAtOnce * lanes) != 0)
    b.loop(blocks, whole, one, [&](Value first) { emit(first, 1, nullptr); });
  if (divisor % lanes != 0)
    b.when(b.less(whole, to), [&] { emit(whole, 1, b.sub(to, whole)); });
}

} // namespace tcc::cpu
