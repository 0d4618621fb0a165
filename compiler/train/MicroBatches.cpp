#include "compiler/train/MicroBatches.h"

#include "compiler/train/BatchTree.h"

using namespace mlir;
using namespace tcc::train;
using namespace tcc::graph;

void tcc::train::declareMicroBatches(VariableTable &table, Builder builder) {
  for (StepField field : {StepField::first, StepField::place, StepField::rank})
    table.declare(field, builder.getI64Type(), 0);
  table.declare(StepField::world, builder.getI64Type(), 1);
}

Value tcc::train::emitBatchNumber(StepFunction &step,
                                  std::optional<int64_t> leaves) {
  OpBuilder builder = OpBuilder::atBlockBegin(&step.getBody());
  TensorEmitter emitter(builder, step.getLoc());
  auto read = [&](StepField field) -> Expr {
    return {step.read(field), &emitter};
  };
  Expr place = leaves ? BatchTree(step, emitter, *leaves).getPlace()
                      : read(StepField::place);
  return (read(StepField::first) + place + read(StepField::rank)).value;
}

void tcc::train::emitNextPlace(StepFunction &step) {
  TensorEmitter emitter(step.getBuilder(), step.getLoc());
  Expr fault{step.read(StepField::fault), &emitter};
  Expr place{step.read(StepField::place), &emitter};
  Expr world{step.read(StepField::world), &emitter};
  Expr isSound = compare(CompareKind::eq, fault, fault.like(0));
  step.write(StepField::place, select(isSound, place + world, place).value);
}

void tcc::train::emitNextUpdate(StepFunction &step, Expr isSound) {
  const TensorEmitter &emitter = *isSound.emitter;
  Expr first{step.read(StepField::first), &emitter};
  Expr place{step.read(StepField::place), &emitter};
  step.write(StepField::first, select(isSound, first + place, first).value);
  step.write(StepField::place, select(isSound, 0.0, place).value);
}
