#include "compiler/codegen/cuda/kernels/RunningSoftmax.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace tcc::cuda {

Value emitRunningWeights(KernelBuilder &b, ArrayRef<Value *> scores,
                         int64_t threads, Value &largest, Value &total) {
  auto constant = [&](double x) -> Value {
    return b.create<arith::ConstantOp>(b.getFloatAttr(largest.getType(), x));
  };
  Value lowest = constant(-INFINITY), most = lowest;
  for (Value *score : scores)
    most = b.create<arith::MaximumFOp>(most, *score);
  for (int64_t mask = 1; mask < threads; mask *= 2)
    most = b.create<arith::MaximumFOp>(most, emitShuffle(b, most, mask));
  most = b.create<arith::MaximumFOp>(largest, most);
  // Without a score that is more than -inf, all weights are 0.
  Value isEmpty =
      b.create<arith::CmpFOp>(arith::CmpFPredicate::OEQ, most, lowest);
  Value shift = b.create<arith::SelectOp>(isEmpty, constant(0), most);
  auto weigh = [&](Value x) -> Value {
    return b.create<math::ExpOp>(b.create<arith::SubFOp>(x, shift));
  };
  Value scale = weigh(largest);
  total = b.create<arith::MulFOp>(total, scale);
  for (Value *score : scores) {
    *score = weigh(*score);
    total = b.create<arith::AddFOp>(total, *score);
  }
  largest = most;
  return scale;
}

} // namespace tcc::cuda
