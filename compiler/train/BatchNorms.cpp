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

namespace {

/// The mean, the biased variance and the number of elements of each channel.
struct Statistics {
  Expr mean, variance, count;
};

} // namespace

static Expr sumOverRanks(Expr x) {
  auto sum = x.emitter->builder.create<AllReduceOp>(x.emitter->loc, x.value,
                                                    ArrayAttr());
  return {sum.getSums().front(), x.emitter};
}

/// Statistics of all ranks, each of which has `own` of as many elements. Around
/// the mean of all, so that no large squares are subtracted.
static Statistics synchronise(const Statistics &own, Value world) {
  const TensorEmitter &emitter = *own.mean.emitter;
  auto type = cast<RankedTensorType>(own.mean.value.getType());
  auto scalar = RankedTensorType::get({}, type.getElementType());
  Expr ranks{emitter.emit<BroadcastOp>(type, emitter.castTo(world, scalar)),
             &emitter};
  Expr mean = sumOverRanks(own.mean) / ranks;
  Expr distance = own.mean - mean;
  Expr variance = sumOverRanks(own.variance + distance * distance) / ranks;
  return {mean, variance, own.count * ranks};
}

static void useBatch(BatchNormOp op, int64_t count, Value world,
                     std::vector<StatisticUpdate> &updates) {
  OpBuilder builder(op);
  TensorEmitter emitter(builder, op.getLoc());
  auto own = builder.create<BatchStatisticsOp>(op.getLoc(), op.getX());
  Expr mean{own.getMean(), &emitter};
  Statistics batch{mean, {own.getVariance(), &emitter}, mean.like(count)};
  if (world)
    batch = synchronise(batch, world);
  double momentum = op.getMomentum().convertToDouble();
  Expr unbiased = world ? batch.variance * (batch.count / (batch.count - 1.0))
                        : batch.variance * (double(count) / double(count - 1));
  updates.push_back(update(emitter, momentum, op.getMean(), batch.mean.value));
  updates.push_back(
      update(emitter, momentum, op.getVariance(), unbiased.value));
  op.getMeanMutable().assign(batch.mean.value);
  op.getVarianceMutable().assign(batch.variance.value);
}

std::vector<StatisticUpdate>
trainBatchNorms(Block &body, llvm::function_ref<bool(BatchNormOp)> isTrained,
                Value world, Problems &problems) {
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
      useBatch(op, count, world, updates);
  }
  return updates;
}

} // namespace tcc::train
