#include "dialects/exec/ExecOps.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace tcc::exec;

// --- launch ------------------------------------------------------------------

SmallVector<Value> LaunchOp::getReads() { return getInputs(); }

SmallVector<Value> LaunchOp::getWrites() {
  SmallVector<Value> writes(getOutputs());
  if (getFault())
    writes.push_back(getFault());
  return writes;
}

LogicalResult LaunchOp::verify() {
  if (getSizes() && getSizes()->getNumDims() != 0)
    return emitOpError("expected sizes over slots");
  if (getBindings() && getBindings()->getNumDims() != 0)
    return emitOpError("expected bindings over slots");
  if (getTasks() && !isSizeMap(*getTasks(), 1))
    return emitOpError("expected one number of tasks");
  return success();
}

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &symbolTable) {
  auto kernel = symbolTable.lookupNearestSymbolFrom<KernelOp>(
      (*this)->getParentOp(), getKernelAttr());
  if (!kernel)
    return emitOpError("has no kernel ") << getKernelAttr();
  size_t symbols = kernel.getSymbols() ? kernel.getSymbols()->size() : 0;
  if (symbols != (getBindings() ? getBindings()->getNumResults() : 0))
    return emitOpError("expected bindings of ")
           << symbols << " symbols of the kernel";
  Operation *computation = kernel.getComputation();
  if (computation->getNumOperands() != getInputs().size() ||
      computation->getNumResults() != getOutputs().size())
    return emitOpError("expected ")
           << computation->getNumOperands() << " inputs and "
           << computation->getNumResults() << " outputs";
  size_t candidates =
      kernel.getCandidates() ? kernel.getCandidates()->size() : 0;
  size_t counted =
      getCandidateTasks() ? getCandidateTasks()->getNumResults() : 0;
  if (candidates != counted)
    return emitOpError("expected tasks of ")
           << candidates << " candidates, found those of " << counted;
  return success();
}

AffineExpr LaunchOp::bind(AffineExpr size) {
  return getBindings() ? size.replaceSymbols(getBindings()->getResults())
                       : size;
}

// --- copy --------------------------------------------------------------------

SmallVector<Value> CopyOp::getReads() { return {getFrom()}; }
SmallVector<Value> CopyOp::getWrites() { return {getTo()}; }

LogicalResult CopyOp::verify() {
  if (!isSizeMap(getBytes(), 1))
    return emitOpError("expected one size");
  return success();
}

SmallVector<Value> StartCopyOp::getReads() { return {getFrom()}; }
SmallVector<Value> StartCopyOp::getWrites() { return {getTo()}; }

LogicalResult StartCopyOp::verify() {
  if (!isSizeMap(getBytes(), 1))
    return emitOpError("expected one size");
  return success();
}

// --- sizes -------------------------------------------------------------------

SmallVector<Value> SetSizeOp::getReads() { return {}; }
SmallVector<Value> SetSizeOp::getWrites() { return {}; }
int64_t SetSizeOp::getSetSlot() { return getSlot(); }

LogicalResult SetSizeOp::verify() {
  if (!isSizeMap(getValue(), 1))
    return emitOpError("expected one value");
  if (static_cast<int64_t>(getMin()) > static_cast<int64_t>(getMax()))
    return emitOpError("expected a range that is not empty");
  return success();
}

SmallVector<Value> ReadSizeOp::getReads() { return {getBuffer()}; }
SmallVector<Value> ReadSizeOp::getWrites() { return {}; }
int64_t ReadSizeOp::getSetSlot() { return getSlot(); }

LogicalResult ReadSizeOp::verify() {
  if (!isa<IntegerType>(getType()))
    return emitOpError("expected an integer, found ") << getType();
  if (static_cast<int64_t>(getMin()) > static_cast<int64_t>(getMax()))
    return emitOpError("expected a range that is not empty");
  return success();
}

#define GET_OP_CLASSES
#include "dialects/exec/Command.cpp.inc"

void ExecDialect::addCommandOps() {
  addOperations<
#define GET_OP_LIST
#include "dialects/exec/Command.cpp.inc"
      >();
}
