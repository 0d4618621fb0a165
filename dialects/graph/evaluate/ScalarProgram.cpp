#include "dialects/graph/evaluate/ScalarProgram.h"
#include "dialects/graph/evaluate/ScalarFunctions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using llvm::Error;

namespace tcc {

/// Instructions that one run may execute: a loop in a scalar body is short.
static constexpr int64_t kMaxSteps = 1 << 20;

static unsigned getWidth(Type type) {
  return type.isIntOrFloat() ? type.getIntOrFloatBitWidth() : 64;
}

/// Flattens a block into a program.
class ScalarCompiler {
public:
  ScalarCompiler(ScalarProgram &program, const ScalarProgram::Buffers &buffers)
      : program(program), buffers(buffers) {}

  unsigned getSlot(Value value) {
    auto [entry, isNew] = slots.try_emplace(value, program.slots.size());
    if (isNew)
      program.slots.push_back({.i = 0});
    return entry->second;
  }

  Error compileBlock(Block &block) {
    for (Operation &op : block) {
      if (op.hasTrait<OpTrait::IsTerminator>())
        break;
      if (Error error = compileOp(op))
        return error;
    }
    return Error::success();
  }

private:
  Error compileOp(Operation &op) {
    return llvm::TypeSwitch<Operation *, Error>(&op)
        .Case([&](arith::ConstantOp constant) { return compile(constant); })
        .Case([&](memref::LoadOp load) { return compile(load); })
        .Case([&](cf::AssertOp check) { return compile(check); })
        .Case([&](scf::IfOp branch) { return compile(branch); })
        .Case([&](scf::ForOp loop) { return compile(loop); })
        .Default([&](Operation *other) { return compileFunction(other); });
  }

  Instruction &append(Instruction::Kind kind) {
    program.instructions.emplace_back().kind = kind;
    return program.instructions.back();
  }
  size_t here() const { return program.instructions.size(); }

  void copy(unsigned from, unsigned to) {
    Instruction &instruction = append(Instruction::Kind::copy);
    instruction.operands = {from};
    instruction.result = to;
  }

  unsigned makeSlot(Scalar value = {.i = 0}) {
    program.slots.push_back(value);
    return program.slots.size() - 1;
  }

  /// A constant needs no instruction: its slot holds the value from the start.
  Error compile(arith::ConstantOp op) {
    unsigned slot = getSlot(op.getResult());
    if (auto value = dyn_cast<FloatAttr>(op.getValue()))
      program.slots[slot] = {.f = value.getValueAsDouble()};
    else if (auto value = dyn_cast<IntegerAttr>(op.getValue()))
      program.slots[slot] = {
          .i = signExtend(int64_t(value.getValue().getZExtValue()),
                          getWidth(op.getType()))};
    else
      return llvm::createStringError("cannot interpret a constant that is not "
                                     "a number");
    return Error::success();
  }

  Error compile(memref::LoadOp op) {
    auto buffer = buffers.find(op.getMemRef());
    if (buffer == buffers.end())
      return llvm::createStringError("cannot interpret a load of local memory");
    Instruction &load = append(Instruction::Kind::load);
    load.tensor = buffer->second;
    for (Value index : op.getIndices())
      load.operands.push_back(getSlot(index));
    load.result = getSlot(op.getResult());
    return Error::success();
  }

  Error compile(cf::AssertOp op) {
    Instruction &check = append(Instruction::Kind::check);
    check.operands = {getSlot(op.getArg())};
    check.message = op.getMsg().str();
    return Error::success();
  }

  void copyYields(Block &block, ArrayRef<unsigned> targets) {
    // Through fresh slots, as a yielded value may be a target itself.
    SmallVector<unsigned> temporaries;
    for (Value value : block.getTerminator()->getOperands()) {
      temporaries.push_back(makeSlot());
      copy(getSlot(value), temporaries.back());
    }
    for (auto [temporary, target] : llvm::zip_equal(temporaries, targets))
      copy(temporary, target);
  }

  Error compile(scf::IfOp op) {
    SmallVector<unsigned> targets;
    for (Value result : op.getResults())
      targets.push_back(getSlot(result));
    size_t toElse = here();
    append(Instruction::Kind::jumpUnless).operands = {
        getSlot(op.getCondition())};
    if (Error error = compileBlock(*op.thenBlock()))
      return error;
    copyYields(*op.thenBlock(), targets);
    size_t toEnd = here();
    append(Instruction::Kind::jump);
    program.instructions[toElse].target = here();
    if (Block *otherwise = op.elseBlock()) {
      if (Error error = compileBlock(*otherwise))
        return error;
      copyYields(*otherwise, targets);
    }
    program.instructions[toEnd].target = here();
    return Error::success();
  }

  Error compile(scf::ForOp op) {
    unsigned index = getSlot(op.getInductionVar());
    SmallVector<unsigned> carried;
    copy(getSlot(op.getLowerBound()), index);
    for (auto [init, argument] :
         llvm::zip_equal(op.getInitArgs(), op.getRegionIterArgs())) {
      carried.push_back(getSlot(argument));
      copy(getSlot(init), carried.back());
    }
    size_t head = here();
    unsigned goesOn = makeSlot();
    Instruction &compare = append(Instruction::Kind::compute);
    compare.function = getScalarFunction("arith.cmpi");
    compare.predicate = int64_t(arith::CmpIPredicate::slt);
    compare.operands = {index, getSlot(op.getUpperBound())};
    compare.result = goesOn;
    size_t toEnd = here();
    append(Instruction::Kind::jumpUnless).operands = {goesOn};
    if (Error error = compileBlock(*op.getBody()))
      return error;
    copyYields(*op.getBody(), carried);
    unsigned step = getSlot(op.getStep());
    Instruction &advance = append(Instruction::Kind::compute);
    advance.function = getScalarFunction("arith.addi");
    advance.operands = {index, step};
    advance.result = index;
    append(Instruction::Kind::jump).target = head;
    program.instructions[toEnd].target = here();
    for (auto [slot, result] : llvm::zip_equal(carried, op.getResults()))
      copy(slot, getSlot(result));
    return Error::success();
  }

  Error compileFunction(Operation *op) {
    StringRef name = op->getName().getStringRef();
    Instruction::Function function = getScalarFunction(name);
    if (!function || op->getNumResults() != 1 || op->getNumOperands() == 0)
      return llvm::createStringError("cannot interpret " + name);
    SmallVector<unsigned, 3> operands;
    for (Value operand : op->getOperands())
      operands.push_back(getSlot(operand));
    unsigned result = getSlot(op->getResult(0));
    Instruction &instruction = append(Instruction::Kind::compute);
    instruction.function = function;
    instruction.operands = operands;
    instruction.result = result;
    instruction.type = op->getResult(0).getType();
    instruction.width = getWidth(instruction.type);
    instruction.operandWidth = getWidth(op->getOperand(0).getType());
    if (auto compare = dyn_cast<arith::CmpFOp>(op))
      instruction.predicate = int64_t(compare.getPredicate());
    if (auto compare = dyn_cast<arith::CmpIOp>(op))
      instruction.predicate = int64_t(compare.getPredicate());
    return Error::success();
  }

  ScalarProgram &program;
  const ScalarProgram::Buffers &buffers;
  llvm::DenseMap<Value, unsigned> slots;
};

llvm::Expected<ScalarProgram> ScalarProgram::compile(Block &block,
                                                     ValueRange results,
                                                     const Buffers &buffers) {
  ScalarProgram program;
  ScalarCompiler compiler(program, buffers);
  for (BlockArgument argument : block.getArguments())
    if (!buffers.contains(argument))
      compiler.getSlot(argument);
  if (Error error = compiler.compileBlock(block))
    return std::move(error);
  for (Value result : results)
    program.resultSlots.push_back(compiler.getSlot(result));
  program.results.resize(results.size());
  return program;
}

static Error readElement(const Instruction &load, std::vector<Scalar> &slots) {
  int64_t offset = 0;
  for (auto [axis, slot] : llvm::enumerate(load.operands)) {
    int64_t index = slots[slot].i, extent = load.tensor->extent(axis);
    if (index < 0 || index >= extent)
      return llvm::createStringError(
          "index %lld is out of range for axis %zu of extent %lld",
          (long long)index, axis, (long long)extent);
    offset = offset * extent + index;
  }
  slots[load.result] = load.tensor->elements[offset];
  return Error::success();
}

llvm::Expected<ArrayRef<Scalar>>
ScalarProgram::run(ArrayRef<Scalar> arguments) {
  llvm::copy(arguments, slots.begin());
  SmallVector<Scalar, 4> operands;
  size_t next = 0;
  for (int64_t steps = 0; next < instructions.size(); ++steps) {
    if (steps == kMaxSteps)
      return llvm::createStringError("a scalar body does not end");
    const Instruction &op = instructions[next++];
    switch (op.kind) {
    case Instruction::Kind::compute:
      operands.clear();
      for (unsigned slot : op.operands)
        operands.push_back(slots[slot]);
      slots[op.result] = op.function(op, operands.data());
      break;
    case Instruction::Kind::copy:
      slots[op.result] = slots[op.operands[0]];
      break;
    case Instruction::Kind::load:
      if (Error error = readElement(op, slots))
        return std::move(error);
      break;
    case Instruction::Kind::jump:
      next = op.target;
      break;
    case Instruction::Kind::jumpUnless:
      if (!slots[op.operands[0]].i)
        next = op.target;
      break;
    case Instruction::Kind::check:
      if (!slots[op.operands[0]].i)
        return llvm::createStringError(op.message);
      break;
    }
  }
  for (auto [slot, result] : llvm::zip_equal(resultSlots, results))
    result = slots[slot];
  return ArrayRef<Scalar>(results);
}

} // namespace tcc
