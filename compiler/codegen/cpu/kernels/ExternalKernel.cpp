//===- ExternalKernel.cpp - Kernels that come as code ---------------------===//
//
// The kernel is a function of tables: this one makes them and calls it.
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cpu/kernels/ExternalKernel.h"
#include "compiler/codegen/cpu/kernels/IrregularEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/DialectResourceBlobManager.h"

using namespace mlir;
using namespace tcc::codegen;
using namespace tcc::graph;

namespace tcc::cpu {

static CustomKernelAttr findKernel(ExternalKernelOpInterface op) {
  return op.findKernel(getHostTarget().getName());
}

CustomKernelAttr findExternal(FusedOp region) {
  auto op = dyn_cast_if_present<ExternalKernelOpInterface>(getAnchor(region));
  return op ? findKernel(op) : CustomKernelAttr();
}

std::string getExternalName(CustomKernelAttr kernel) {
  auto code = cast<CustomCodeAttr>(kernel.getCodes()[0]);
  return ("custom_" + kernel.getSymbol().getValue() + "_" +
          code.getBytes().getRawHandle().getKey())
      .str();
}

FailureOr<TaskPlan> planExternal(ExternalKernelOpInterface op,
                                 ArrayRef<SymbolAttr> symbols) {
  CustomKernelAttr kernel = findKernel(op);
  auto fused = op->getParentOfType<FusedOp>();
  auto yields = fused.getBody().front().getTerminator()->getOperands();
  bool isWhole = yields.size() == op->getNumResults() &&
                 llvm::all_of(op->getResults(), [&](Value result) {
                   return llvm::is_contained(yields, result);
                 });
  if (!kernel || !isWhole)
    return op->emitOpError("has no code for this target, or its results are "
                           "not those of the kernel");
  return TaskPlan{
      kernel.getTasks().getValue().getResult(0),
      getMaxCount(kernel.getScratch().getValue().getResults(), symbols)};
}

/// A table of `values`, all of `type`, on the stack.
static Value emitTable(OpBuilder &b, Location loc, Type type,
                       ArrayRef<Value> values) {
  Type pointer = LLVM::LLVMPointerType::get(b.getContext());
  Value count = b.create<LLVM::ConstantOp>(loc, b.getI64Type(),
                                           std::max<int64_t>(1, values.size()));
  Value table = b.create<LLVM::AllocaOp>(loc, pointer, type, count);
  for (auto [i, value] : llvm::enumerate(values)) {
    Value place = b.create<LLVM::GEPOp>(loc, pointer, type, table,
                                        ArrayRef<LLVM::GEPArg>{int32_t(i)});
    b.create<LLVM::StoreOp>(loc, value, place);
  }
  return table;
}

void emitExternal(OpBuilder &b, KernelFrame &frame,
                  ExternalKernelOpInterface op) {
  Location loc = frame.loc;
  CustomKernelAttr kernel = findKernel(op);
  Type pointer = LLVM::LLVMPointerType::get(b.getContext());
  Type i64 = b.getI64Type();
  SmallVector<Value> buffers, sizes;
  for (Value operand : op->getOperands())
    buffers.push_back(frame.elements.getBuffer(operand).getPointer());
  for (Value result : op->getResults()) {
    auto yields = frame.getYields();
    buffers.push_back(frame.results[llvm::find(yields, result) - yields.begin()]
                          .getPointer());
  }
  auto toInteger = [&](Value index) {
    return b.create<arith::IndexCastOp>(loc, i64, index);
  };
  for (AffineExpr size : kernel.getSizes().getValue().getResults())
    sizes.push_back(toInteger(frame.size(b, size)));
  auto caller = b.getBlock()->getParent()->getParentOfType<func::FuncOp>();
  OpBuilder outside(caller);
  auto type = b.getFunctionType({pointer, pointer, i64, i64, pointer}, {});
  auto callee =
      outside.create<func::FuncOp>(loc, getExternalName(kernel), type);
  callee.setPrivate();
  b.create<func::CallOp>(loc, callee,
                         ValueRange{emitTable(b, loc, pointer, buffers),
                                    emitTable(b, loc, i64, sizes),
                                    toInteger(frame.firstTask),
                                    toInteger(frame.lastTask), frame.scratch});
}

} // namespace tcc::cpu
