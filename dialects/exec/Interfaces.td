#ifndef TCC_EXEC_INTERFACES
#define TCC_EXEC_INTERFACES

include "mlir/IR/OpBase.td"

def CommandOpInterface : OpInterface<"CommandOpInterface"> {
  let cppNamespace = "::tcc::exec";
  let description = [{
    A step of a program. Scheduling, liveness and verification derive from what
    it reads and writes; nested commands speak for themselves.
  }];
  let methods = [
    InterfaceMethod<"The buffers whose bytes the command reads.",
      "::llvm::SmallVector<::mlir::Value>", "getReads">,
    InterfaceMethod<"The buffers whose bytes the command writes.",
      "::llvm::SmallVector<::mlir::Value>", "getWrites">,
    InterfaceMethod<"The size slot that the command sets, or -1.",
      "int64_t", "getSetSlot", (ins), "", "return -1;">,
    InterfaceMethod<"True if the command may not move: it orders others.",
      "bool", "isBarrier", (ins), "", "return false;">];
}

#endif // TCC_EXEC_INTERFACES
