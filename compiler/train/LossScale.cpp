#include "compiler/train/LossScale.h"

#include <limits>

using namespace mlir;
using namespace tcc::train;
using namespace tcc::graph;

// The defaults of torch.amp.GradScaler.
static constexpr double kInitialScale = 65536, kGrowth = 2, kBackoff = 0.5;
static constexpr double kGrowthInterval = 2000;

void tcc::train::declareLossScale(VariableTable &table) {
  Builder builder(table.getContext());
  table.declare(StepField::loss_scale, builder.getF64Type(), kInitialScale);
  table.declare(StepField::growth_count, builder.getI64Type(), 0);
}

LossScale::LossScale(StepFunction &step, const Settings &settings,
                     const TensorEmitter &emitter)
    : step(step), emitter(emitter) {
  Expr given = settings.get("loss_scale");
  dynamic = compare(CompareKind::eq, given, given.like(0));
  factor = select(dynamic, read(StepField::loss_scale), given);
}

Expr LossScale::isExhausted() {
  Expr next = read(StepField::loss_scale) * kBackoff;
  return dynamic.make<AndOp>(next < double(std::numeric_limits<float>::min()));
}

void LossScale::advance(Expr isApplied, Expr hasOverflow) {
  Expr scale = read(StepField::loss_scale),
       count = read(StepField::growth_count);
  Expr isTime = count + 1.0 >= kGrowthInterval;
  // The loss is scaled in f32.
  Expr grown = scale * kGrowth;
  Expr isLarge = grown > double(std::numeric_limits<float>::max());
  Expr after = select(isTime, select(isLarge, scale, grown), scale);
  Expr countAfter = select(isTime, 0.0, count + 1.0);
  auto write = [&](StepField field, Expr old, Expr applied, Expr overflowed) {
    Expr next =
        select(hasOverflow, overflowed, select(isApplied, applied, old));
    step.write(field, select(dynamic, next, old).value);
  };
  write(StepField::loss_scale, scale, after, scale * kBackoff);
  write(StepField::growth_count, count, countAfter, count.like(0));
}
