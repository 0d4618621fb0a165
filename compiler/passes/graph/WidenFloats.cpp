//===- WidenFloats.cpp - All that is f32 in f64 ---------------------------===//
#include "compiler/passes/graph/Passes.h"
#include "compiler/passes/graph/match/Matchers.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc {

#define GEN_PASS_DEF_WIDENFLOATSPASS
#include "compiler/passes/graph/Passes.h.inc"

namespace {

struct WidenFloatsPass : impl::WidenFloatsPassBase<WidenFloatsPass> {
  void runOnOperation() override;
};

} // namespace

static bool isF32(Value value) {
  auto tensor = dyn_cast<RankedTensorType>(value.getType());
  return tensor && tensor.getElementType().isF32();
}

static RankedTensorType getWideType(Value value) {
  return withElementType(getTensorType(value),
                         Float64Type::get(value.getContext()));
}

/// What is given in f32 is widened before it is read.
static void widenGiven(Value value) {
  OpBuilder builder(value.getContext());
  builder.setInsertionPointAfterValue(value);
  auto wide = builder.create<CastOp>(value.getLoc(), getWideType(value), value);
  value.replaceAllUsesExcept(wide, wide);
}

/// `op`, whose operands are wide already, with wide results.
static void widen(Operation *op) {
  for (Value result : op->getResults()) {
    if (!isF32(result))
      continue;
    if (isa<WeightOp, ConstantOp>(op))
      widenGiven(result);
    else
      result.setType(getWideType(result));
  }
  for (Region &region : op->getRegions())
    for (Value argument : region.getArguments())
      if (isF32(argument))
        argument.setType(getWideType(argument));
}

/// Code that is given is of the types that it has: casts stand around it.
static void keepTypes(Operation *op, TypeRange operandTypes) {
  OpBuilder builder(op);
  for (auto [operand, type] :
       llvm::zip_equal(op->getOpOperands(), operandTypes))
    if (operand.get().getType() != type)
      operand.set(builder.create<CastOp>(op->getLoc(), type, operand.get()));
  for (Value result : op->getResults())
    if (isF32(result))
      widenGiven(result);
}

static void narrowResults(func::ReturnOp op, FunctionType type) {
  OpBuilder builder(op);
  for (auto [operand, result] :
       llvm::zip_equal(op->getOpOperands(), type.getResults()))
    if (operand.get().getType() != result)
      operand.set(builder.create<CastOp>(op.getLoc(), result, operand.get()));
}

void WidenFloatsPass::runOnOperation() {
  for (auto function : getOperation().getOps<func::FuncOp>()) {
    SmallVector<Operation *> ops;
    llvm::DenseMap<Operation *, SmallVector<Type>> external;
    function.getBody().walk<WalkOrder::PreOrder>([&](Operation *op) {
      ops.push_back(op);
      if (isa<ExternalKernelOpInterface>(op))
        external[op] = llvm::to_vector(op->getOperandTypes());
    });
    for (Value argument : function.getArguments())
      if (isF32(argument))
        widenGiven(argument);
    for (Operation *op : ops)
      if (auto terminator = dyn_cast<func::ReturnOp>(op))
        narrowResults(terminator, function.getFunctionType());
      else if (external.contains(op))
        keepTypes(op, external[op]);
      else
        widen(op);
  }
}

} // namespace tcc
