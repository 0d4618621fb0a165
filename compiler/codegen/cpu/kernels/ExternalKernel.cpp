//===- ExternalKernel.cpp - Kernels that come as code ---------------------===//
//
// The kernel is a function of tables: this one makes them and calls it.
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/region/ExternalKernel.h"
#include "compiler/codegen/cpu/kernels/IrregularEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tcc::codegen;
using namespace tcc::graph;

namespace tcc::cpu {

FailureOr<TaskPlan> planExternal(ExternalKernelOpInterface op,
                                 ArrayRef<SymbolAttr> symbols) {
  auto kernel = getExternal(op, getHostTarget().getName());
  if (failed(kernel))
    return failure();
  return TaskPlan{
      kernel->getTasks().getValue().getResult(0),
      getMaxCount(kernel->getScratch().getValue().getResults(), symbols)};
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
  CustomKernelAttr kernel = op.findKernel(getHostTarget().getName());
  ExternalArguments arguments = emitArguments(b, frame, op, kernel);
  Type pointer = LLVM::LLVMPointerType::get(b.getContext());
  Type i64 = b.getI64Type();
  auto toInteger = [&](Value index) {
    return b.create<arith::IndexCastOp>(loc, i64, index);
  };
  emitExternalCall(b, loc, kernel,
                   {emitTable(b, loc, pointer, arguments.buffers),
                    emitTable(b, loc, i64, arguments.sizes),
                    toInteger(frame.firstTask), toInteger(frame.lastTask),
                    frame.scratch});
}

} // namespace tcc::cpu
