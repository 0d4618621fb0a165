#include "compiler/train/BatchNorms.h"

#include "dialects/graph/NodeNames.h"
#include "dialects/graph/ops/TensorEmitter.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc::train {

/// (1 - momentum) running + momentum current
static StatisticUpdate update(const TensorEmitter &emitter, double momentum,
                              Value running, Value current) {
  Expr x{running, &emitter}, y{current, &emitter};
  return {running, (x * (1 - momentum) + y * momentum).value};
}

static void useBatch(BatchNormOp op, int64_t count,
                     std::vector<StatisticUpdate> &updates) {
  OpBuilder builder(op);
  TensorEmitter emitter(builder, op.getLoc());
  auto statistics = builder.create<BatchStatisticsOp>(op.getLoc(), op.getX());
  Value mean = statistics.getMean(), variance = statistics.getVariance();
  double momentum = op.getMomentum().convertToDouble();
  Expr unbiased =
      Expr{variance, &emitter} * (double(count) / double(count - 1));
  updates.push_back(update(emitter, momentum, op.getMean(), mean));
  updates.push_back(
      update(emitter, momentum, op.getVariance(), unbiased.value));
  op.getMeanMutable().assign(mean);
  op.getVarianceMutable().assign(variance);
}

std::vector<StatisticUpdate>
trainBatchNorms(Block &body, llvm::function_ref<bool(BatchNormOp)> isTrained,
                Problems &problems) {
  std::vector<StatisticUpdate> updates;
  for (auto op : llvm::to_vector(body.getOps<BatchNormOp>())) {
    if (!isTrained(op))
      continue;
    RankedTensorType type = op.getX().getType();
    bool isStatic = type.hasStaticShape();
    int64_t count = isStatic ? type.getNumElements() /
                                   std::max<int64_t>(1, type.getDimSize(1))
                             : 0;
    if (count < 2)
      problems.add({ProblemClass::unsupported, getNodeName(op), "",
                    isStatic ? "has one element a channel: a batch norm cannot "
                               "be trained on it"
                             : "a batch norm of symbolic extents cannot be "
                               "trained"});
    else
      useBatch(op, count, updates);
  }
  return updates;
}

} // namespace tcc::train
