#include "compiler/codegen/region/ExternalKernel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/DialectResourceBlobManager.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc::codegen {

CustomKernelAttr findExternal(FusedOp region, StringRef target) {
  auto op = dyn_cast_if_present<ExternalKernelOpInterface>(getAnchor(region));
  return op ? op.findKernel(target) : CustomKernelAttr();
}

FailureOr<CustomKernelAttr> getExternal(ExternalKernelOpInterface op,
                                        StringRef target) {
  CustomKernelAttr kernel = op.findKernel(target);
  auto fused = op->getParentOfType<FusedOp>();
  auto yields = fused.getBody().front().getTerminator()->getOperands();
  if (!kernel || !llvm::equal(yields, op->getResults()) ||
      !llvm::equal(op->getOperands(), fused.getBody().getArguments()))
    return op->emitOpError("has no code for this target, or its operands and "
                           "results are not those of the kernel");
  return kernel;
}

exec::FinishedCodeAttr findFinished(FusedOp region, StringRef target) {
  CustomKernelAttr kernel = findExternal(region, target);
  if (!kernel || !kernel.isFinished())
    return {};
  return exec::FinishedCodeAttr::get(region.getContext(), kernel.getSymbol(),
                                     kernel.getSizes(), kernel.getSharedBytes(),
                                     kernel.getCodes());
}

std::string getExternalName(CustomKernelAttr kernel) {
  auto code = cast<CustomCodeAttr>(kernel.getCodes()[0]);
  return ("custom_" + kernel.getSymbol().getValue() + "_" +
          code.getBytes().getRawHandle().getKey())
      .str();
}

llvm::MemoryBufferRef getBytes(CustomCodeAttr code) {
  ArrayRef<char> bytes;
  if (auto *blob = code.getBytes().getRawHandle().getBlob())
    bytes = blob->getData();
  return {StringRef(bytes.data(), bytes.size()), "code"};
}

ExternalArguments emitArguments(OpBuilder &b, RegionFrame &frame,
                                ExternalKernelOpInterface op,
                                CustomKernelAttr kernel) {
  ExternalArguments arguments;
  for (Value operand : op->getOperands())
    arguments.buffers.push_back(frame.elements.getBuffer(operand).getPointer());
  auto yields = frame.getYields();
  for (Value result : op->getResults()) {
    size_t place = llvm::find(yields, result) - yields.begin();
    arguments.buffers.push_back(frame.results[place].getPointer());
  }
  for (AffineExpr size : kernel.getSizes().getValue().getResults())
    arguments.sizes.push_back(b.create<arith::IndexCastOp>(
        frame.loc, b.getI64Type(), frame.size(b, size)));
  return arguments;
}

void emitExternalCall(OpBuilder &b, Location loc, CustomKernelAttr kernel,
                      ValueRange operands) {
  Operation *caller = b.getBlock()->getParentOp();
  while (!isa<FunctionOpInterface>(caller))
    caller = caller->getParentOp();
  OpBuilder outside(caller);
  auto callee = outside.create<func::FuncOp>(
      loc, getExternalName(kernel),
      b.getFunctionType(operands.getTypes(), TypeRange()));
  callee.setPrivate();
  b.create<func::CallOp>(loc, callee, operands);
}

} // namespace tcc::codegen
