#include "dialects/exec/ExecOps.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace tcc::exec;

LogicalResult EntryOp::verifyRegions() {
  for (Attribute attr : getStates()) {
    auto state = cast<StateAttr>(attr);
    if (state.getInput() >= getInputs().size() ||
        state.getOutput() >= getOutputs().size())
      return emitOpError("state ") << attr << " has no such input or output";
  }
  return verifyEntry(*this);
}

LogicalResult KernelOp::verifyRegions() {
  Block &block = getBody().front();
  if (!llvm::hasSingleElement(block))
    return emitOpError("expected one op in the body");
  if (block.front().getOperands() != ValueRange(block.getArguments()))
    return emitOpError("expected the computation to take the body's arguments");
  if (getSymbols() &&
      (getSymbols()->empty() ||
       !llvm::all_of(*getSymbols(), llvm::IsaPred<graph::SymbolAttr>)))
    return emitOpError("expected symbols of the graph dialect");
  return success();
}

LogicalResult ConstantOp::verify() {
  if (getValue() && getValue()->getType() != getType())
    return emitOpError("expected a value of type ") << getType();
  return success();
}

#define GET_OP_CLASSES
#include "dialects/exec/Program.cpp.inc"

void ExecDialect::addProgramOps() {
  addOperations<
#define GET_OP_LIST
#include "dialects/exec/Program.cpp.inc"
      >();
}
