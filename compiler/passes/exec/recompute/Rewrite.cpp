#include "compiler/passes/exec/recompute/Rewrite.h"

#include "compiler/passes/graph/fusion/Region.h"
#include "compiler/target/Kernel.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace tcc::exec {

namespace {

class EntryBuilder {
public:
  EntryBuilder(const Trace &trace, const Simulation &simulation,
               ModuleOp module)
      : trace(trace), simulation(simulation), module(module), kernels(module),
        builder(module.getContext()) {}

  EntryOp build();

private:
  void cloneDefinitions(Block &body);
  void addCommand(const Step &step);
  void addUnit(const Step &step);
  KernelOp addKernel(const Unit &unit);
  graph::FusedOp addSlice(const Unit &unit, Block &body);
  Value addBuffer(BufferOp like);

  const Trace &trace;
  const Simulation &simulation;
  ModuleOp module;
  SymbolTable kernels;
  OpBuilder builder;
  IRMapping mapping;
  Block *definitions = nullptr;
  llvm::DenseMap<InstanceId, Value> buffers;
};

/// Copies ops of a computation with the constants and views that they read.
class SliceCloner {
public:
  SliceCloner(Block &body) : builder(OpBuilder::atBlockEnd(&body)) {}
  void map(Value from, Value to) { mapping.map(from, to); }
  Value get(Value value);
  void clone(Operation *op);

private:
  OpBuilder builder;
  IRMapping mapping;
};

} // namespace

void SliceCloner::clone(Operation *op) {
  for (Value operand : op->getOperands())
    get(operand);
  builder.clone(*op, mapping);
}

Value SliceCloner::get(Value value) {
  if (!mapping.contains(value))
    clone(value.getDefiningOp());
  return mapping.lookup(value);
}

/// Scratch as large as `like`.
Value EntryBuilder::addBuffer(BufferOp like) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(definitions);
  return builder.create<BufferOp>(
      like.getLoc(), like.getType(),
      StorageClassAttr::get(like.getContext(), StorageClass::scratch),
      IntegerAttr(), like.getBytesAttr(), like.getBoundAttr(), IntegerAttr(),
      UnitAttr(), UnitAttr());
}

void EntryBuilder::cloneDefinitions(Block &body) {
  definitions = &body;
  builder.setInsertionPointToEnd(&body);
  for (Operation &op : trace.getBlock())
    if (!isa<CommandOpInterface>(op))
      builder.clone(op, mapping);
}

void EntryBuilder::addCommand(const Step &step) {
  const TracedCommand &command = trace.commands[step.id];
  for (auto [value, instance] : llvm::zip(command.writes, step.writes))
    buffers[instance] = mapping.lookup(trace.values[value].getBuffer());
  IRMapping now = mapping;
  auto read = llvm::zip(command.reads, step.reads);
  for (auto [value, instance] : read)
    if (trace.values[value].writer != kNone)
      now.map(trace.values[value].getBuffer(), buffers[instance]);
  Operation *copy = builder.clone(*command.op, now);
  mapping.map(command.op->getResults(), copy->getResults());
}

graph::FusedOp EntryBuilder::addSlice(const Unit &unit, Block &body) {
  graph::FusedOp whole = trace.commands[unit.launch].getComputation();
  bool hasLoops =
      llvm::any_of(unit.members, llvm::IsaPred<graph::KernelOpInterface>);
  SmallVector<Type> types;
  for (const Unit::Output &output : unit.outputs)
    types.push_back(whole.getResult(output.result).getType());
  SmallVector<Value> inputs;
  for (const Unit::Input &input : unit.inputs)
    inputs.push_back(body.addArgument(input.inner.getType(), whole.getLoc()));
  auto fused = OpBuilder::atBlockEnd(&body).create<graph::FusedOp>(
      whole.getLoc(), types,
      hasLoops ? whole.getKind() : graph::KernelKind::pointwise, inputs);
  fused->setDiscardableAttrs(whole->getDiscardableAttrDictionary());
  // Its pairs count the operands of the whole; a part writes none of them.
  fused->removeAttr(kInPlaceAttr);
  Block &block = fused.getBody().emplaceBlock();
  SliceCloner cloner(block);
  for (const Unit::Input &input : unit.inputs)
    cloner.map(input.inner,
               block.addArgument(input.inner.getType(), whole.getLoc()));
  for (Operation *member : unit.members)
    cloner.clone(member);
  Operation *yield = whole.getBody().front().getTerminator();
  SmallVector<Value> yielded;
  for (const Unit::Output &output : unit.outputs)
    yielded.push_back(cloner.get(yield->getOperand(output.result)));
  OpBuilder::atBlockEnd(&block).create<graph::YieldOp>(whole.getLoc(), yielded);
  return fused;
}

/// Each launch has a kernel of its own until equal ones are merged.
KernelOp EntryBuilder::addKernel(const Unit &unit) {
  KernelOp original = trace.commands[unit.launch].kernel;
  KernelOp kernel;
  if (unit.isWhole) {
    kernel = original.clone();
  } else {
    kernel = cast<KernelOp>(original->cloneWithoutRegions());
    addSlice(unit, kernel.getBody().emplaceBlock());
  }
  kernels.insert(kernel, module.getBody()->begin());
  return kernel;
}

void EntryBuilder::addUnit(const Step &step) {
  const Unit &unit = trace.units[step.id];
  auto launch = cast<LaunchOp>(trace.commands[unit.launch].op);
  SmallVector<Value> inputs, outputs;
  for (auto [input, instance] : llvm::zip(unit.inputs, step.reads)) {
    bool isValue =
        input.value != kNone && trace.values[input.value].writer != kNone;
    inputs.push_back(isValue ? buffers[instance]
                             : mapping.lookup(input.buffer));
  }
  for (auto [output, instance] : llvm::zip(unit.outputs, step.writes)) {
    BufferOp like = getRoot(launch.getOutputs()[output.result]);
    outputs.push_back(buffers[instance] = addBuffer(like));
  }
  builder.create<LaunchOp>(
      launch.getLoc(), addKernel(unit).getSymName(), inputs, outputs,
      /*fault=*/Value(), launch.getSizesAttr(), /*tasks=*/AffineMapAttr(),
      launch.getNode(), /*flops=*/AffineMapAttr(), /*bytes=*/AffineMapAttr(),
      /*candidateTasks=*/AffineMapAttr(), /*bindings=*/AffineMapAttr(),
      launch.getLane());
}

EntryOp EntryBuilder::build() {
  builder.setInsertionPointToEnd(module.getBody());
  EntryOp old = trace.entry;
  auto entry = cast<EntryOp>(builder.insert(old->cloneWithoutRegions()));
  Block &body = entry.getBody().emplaceBlock();
  cloneDefinitions(body);
  for (const Step &step : simulation.getSteps())
    if (step.isUnit)
      addUnit(step);
    else
      addCommand(step);
  return entry;
}

EntryOp buildEntry(const Trace &trace, const Simulation &simulation,
                   ModuleOp module) {
  return EntryBuilder(trace, simulation, module).build();
}

} // namespace tcc::exec
