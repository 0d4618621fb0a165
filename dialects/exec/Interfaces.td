#ifndef TCC_EXEC_INTERFACES
#define TCC_EXEC_INTERFACES

include "mlir/IR/OpBase.td"

def CommandOpInterface : OpInterface<"CommandOpInterface"> {
  let cppNamespace = "::tcc::exec";
  let description = [{
    A step of a program. Scheduling, lanes, liveness and verification derive from
    what it reads and writes (Effects.h); nested commands speak for themselves.
  }];
  let methods = [
    InterfaceMethod<"The buffers whose bytes the command reads.",
      "::llvm::SmallVector<::mlir::Value>", "getReads">,
    InterfaceMethod<"The buffers whose bytes the command writes.",
      "::llvm::SmallVector<::mlir::Value>", "getWrites">,
    InterfaceMethod<"The lane that the command runs on.",
      "uint64_t", "getLane">,
    InterfaceMethod<"The size slot that the command sets, or -1.",
      "int64_t", "getSetSlot", (ins), "", "return -1;">,
    InterfaceMethod<
      [{The group of a collective: its ranks run the collectives of the group in
        one order.}],
      "::std::optional<uint64_t>", "getGroupOfRanks", (ins), "",
      "return ::std::nullopt;">];
}

def TokenOpInterface : OpInterface<"TokenOpInterface"> {
  let cppNamespace = "::tcc::exec";
  let description = [{
    A command with a token: what stands for the moment at which its lane has done
    it and all that comes before it on the lane. `exec.wait` waits for that.
  }];
  let methods = [
    InterfaceMethod<"", "::mlir::Value", "getToken", (ins), "",
      "return $_op->getResult(0);">,
    InterfaceMethod<
      [{True for a command that goes on beside those that follow it: its buffers
        are in use until its token is waited for.}],
      "bool", "isStart", (ins), "", "return true;">];
  let extraClassDeclaration = [{
    /// The same of any op.
    static bool isStart(::mlir::Operation *op) {
      auto token = ::mlir::dyn_cast<TokenOpInterface>(op);
      return token && token.isStart();
    }
    /// Whether another lane than its own waits for the token.
    bool joinsLanes();
  }];
}

#endif // TCC_EXEC_INTERFACES
