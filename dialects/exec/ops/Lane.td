#ifndef TCC_EXEC_LANE
#define TCC_EXEC_LANE

include "dialects/exec/ExecDialect.td"

class Exec_Event<string mnemonic> : Exec_Op<mnemonic, [
    DeclareOpInterfaceMethods<CommandOpInterface,
                              ["getReads", "getWrites", "isBarrier"]>]> {
  let arguments = (ins I64Attr:$event,
                       DefaultValuedAttr<I64Attr, "0">:$lane);
  let assemblyFormat = "$event attr-dict";
}

def Exec_RecordEventOp : Exec_Event<"record_event"> {
  let summary = "marks a place in the lane";
}

def Exec_WaitEventOp : Exec_Event<"wait_event"> {
  let summary = "the lane goes on when the marked place was reached";
}

def Exec_AllReduceOp : Exec_Op<"all_reduce", [
    DeclareOpInterfaceMethods<CommandOpInterface,
                              ["getReads", "getWrites", "isBarrier"]>]> {
  let summary = "combines a buffer with those of all ranks, in place";
  let description = [{
    Every rank runs the same collectives in the same order; with one rank it does
    nothing.
  }];
  let arguments = (ins Exec_ReduceKindAttr:$kind, Exec_BufferType:$buffer,
                       TypeAttr:$type, AffineMapAttr:$count,
                       DefaultValuedAttr<I64Attr, "0">:$lane);
  let assemblyFormat = [{
    $kind $buffer `as` $type `count` $count attr-dict
    `:` qualified(type($buffer))
  }];
  let hasVerifier = 1;
}

#endif // TCC_EXEC_LANE
