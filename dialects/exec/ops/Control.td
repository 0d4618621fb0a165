#ifndef TCC_EXEC_CONTROL
#define TCC_EXEC_CONTROL

include "dialects/exec/ExecDialect.td"

def Exec_IfOp : Exec_Command<"if", [SingleBlock, NoTerminator,
    NoRegionArguments]> {
  let summary = "one of two blocks";
  let description = [{
    `condition` holds one boolean byte. Results are written to buffers of the
    surrounding block.
  }];
  let arguments = (ins Exec_BufferType:$condition,
                       DefaultValuedAttr<I64Attr, "0">:$lane);
  let regions = (region SizedRegion<1>:$then_region,
                        SizedRegion<1>:$else_region);
  let assemblyFormat = [{
    $condition attr-dict-with-keyword `:` qualified(type($condition))
    $then_region `else` $else_region
  }];
}

def Exec_LoopOp : Exec_Op<"loop", [SingleBlock, NoTerminator, NoRegionArguments,
    DeclareOpInterfaceMethods<CommandOpInterface,
                              ["getReads", "getWrites", "getSetSlot"]>]> {
  let summary = "repeats a block";
  let description = [{
    for (slots[slot] = 0; slots[slot] < trips && condition; ++slots[slot]) body

    Without `trips` there is no limit but `max_trips`, which fails the run; an
    absent condition is true. The body updates the condition buffer, which is
    read before each iteration. After the loop the slot holds the trip count.
  }];
  let arguments = (ins I64Attr:$slot, OptionalAttr<AffineMapAttr>:$trips,
                       Optional<Exec_BufferType>:$condition,
                       I64Attr:$max_trips, StrAttr:$node,
                       DefaultValuedAttr<I64Attr, "0">:$lane);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $slot (`trips` $trips^)? (`while` $condition^ `:` qualified(type($condition)))?
    `max` $max_trips `node` $node attr-dict-with-keyword $body
  }];
  let hasVerifier = 1;
}

#endif // TCC_EXEC_CONTROL
