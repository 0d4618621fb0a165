#ifndef TCC_EXEC_LANE
#define TCC_EXEC_LANE

include "dialects/exec/ExecDialect.td"

def Exec_RecordEventOp : Exec_Command<"record_event", [
    DeclareOpInterfaceMethods<TokenOpInterface, ["isStart"]>]> {
  let summary = "marks a place in its lane";
  let description = [{
    Example: `%here = exec.record_event {lane = 1 : i64}`
  }];
  let arguments = (ins DefaultValuedAttr<I64Attr, "0">:$lane);
  let results = (outs Exec_TokenType:$token);
  let assemblyFormat = "attr-dict";
}

def Exec_WaitOp : Exec_Command<"wait"> {
  let summary = "its lane goes on when the token's place was reached";
  let description = [{
    The buffers of a command that was started are in use until then.

    Example: `exec.wait %reduced`
  }];
  let arguments = (ins Exec_TokenType:$token,
                       DefaultValuedAttr<I64Attr, "0">:$lane);
  let assemblyFormat = "$token attr-dict";
  let extraClassDeclaration = [{
    /// What is waited for.
    ::tcc::exec::TokenOpInterface getMarked() {
      return ::mlir::cast<::tcc::exec::TokenOpInterface>(
          getToken().getDefiningOp());
    }
    /// Whether another lane than its own is waited for.
    bool joinsLanes();
  }];
}

#endif // TCC_EXEC_LANE
