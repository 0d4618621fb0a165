#ifndef TCC_EXEC_COMMAND
#define TCC_EXEC_COMMAND

include "dialects/exec/ExecDialect.td"

def Exec_LaunchOp : Exec_Command<"launch", [AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "runs a kernel";
  let description = [{
    kernel(inputs + outputs [+ fault], sizes, ...) over tasks [0, tasks).
    `sizes`, `tasks` and the `fault` buffer of a kernel that checks indices are
    the target's (`tcc-select-kernels`) and absent before, but for sizes that a
    run computes: what reads them follows what sets them. `flops` and `bytes` are
    what the cost model counts; `node` names the model's nodes. Each candidate of
    the kernel has its own number of tasks. `bindings` are the values of the
    symbols of a kernel that has its own.
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel,
                       Variadic<Exec_BufferType>:$inputs,
                       Variadic<Exec_BufferType>:$outputs,
                       Optional<Exec_BufferType>:$fault,
                       OptionalAttr<AffineMapAttr>:$sizes,
                       OptionalAttr<AffineMapAttr>:$tasks,
                       StrAttr:$node, OptionalAttr<AffineMapAttr>:$flops,
                       OptionalAttr<AffineMapAttr>:$bytes,
                       OptionalAttr<AffineMapAttr>:$candidate_tasks,
                       OptionalAttr<AffineMapAttr>:$bindings,
                       DefaultValuedAttr<I64Attr, "0">:$lane);
  let extraClassDeclaration = [{
    /// `size`, of the kernel's symbols, in those of the module.
    ::mlir::AffineExpr bind(::mlir::AffineExpr size);
  }];
  let assemblyFormat = [{
    $kernel `ins` `(` $inputs `)` `outs` `(` $outputs `)`
    (`fault` `(` $fault^ `:` type($fault) `)`)? (`sizes` $sizes^)?
    (`tasks` $tasks^)? `node` $node attr-dict
    `:` functional-type($inputs, $outputs)
  }];
  let hasVerifier = 1;
}

def Exec_CopyOp : Exec_Command<"copy"> {
  let summary = "copies bytes between buffers that do not overlap";
  let arguments = (ins Exec_BufferType:$from, Exec_BufferType:$to,
                       AffineMapAttr:$bytes,
                       DefaultValuedAttr<I64Attr, "0">:$lane);
  let assemblyFormat = [{
    $from `to` $to `bytes` $bytes attr-dict
    `:` qualified(type($from)) `,` qualified(type($to))
  }];
  let hasVerifier = 1;
}

def Exec_StartCopyOp : Exec_Start<"start_copy", [
    DeclareOpInterfaceMethods<CommandOpInterface, ["getReads", "getWrites"]>]> {
  let summary = "starts to copy bytes between buffers that do not overlap";
  let description = [{
    Example: `%copied = exec.start_copy %a to %b bytes affine_map<() -> (8)>
      : !exec.buffer<host>, !exec.buffer<host>`
  }];
  let arguments = (ins Exec_BufferType:$from, Exec_BufferType:$to,
                       AffineMapAttr:$bytes,
                       DefaultValuedAttr<I64Attr, "0">:$lane);
  let assemblyFormat = [{
    $from `to` $to `bytes` $bytes attr-dict
    `:` qualified(type($from)) `,` qualified(type($to))
  }];
  let hasVerifier = 1;
}

def Exec_SetSizeOp : Exec_Op<"set_size", [
    DeclareOpInterfaceMethods<CommandOpInterface,
                              ["getReads", "getWrites", "getSetSlot"]>]> {
  let summary = "slots[slot] = value";
  let description = [{
    A value outside [min, max] fails the run, naming the node and `what` is set.
  }];
  let arguments = (ins I64Attr:$slot, AffineMapAttr:$value,
                       DefaultValuedAttr<I64Attr, "INT64_MIN">:$min,
                       DefaultValuedAttr<I64Attr, "INT64_MAX">:$max,
                       OptionalAttr<StrAttr>:$node, OptionalAttr<StrAttr>:$what,
                       DefaultValuedAttr<I64Attr, "0">:$lane);
  let assemblyFormat = [{
    $slot `to` $value (`in` $min^ `to` $max)? (`node` $node^ `what` $what)?
    attr-dict
  }];
  let hasVerifier = 1;
}

def Exec_ReadSizeOp : Exec_Op<"read_size", [
    DeclareOpInterfaceMethods<CommandOpInterface,
                              ["getReads", "getWrites", "getSetSlot"]>]> {
  let summary = "slots[slot] = the integer in a buffer";
  let description = [{
    A value outside [min, max] fails the run, naming the node and `what` is read.
  }];
  let arguments = (ins I64Attr:$slot, Exec_BufferType:$buffer,
                       TypeAttr:$type, I64Attr:$min, I64Attr:$max,
                       StrAttr:$node, StrAttr:$what,
                       DefaultValuedAttr<I64Attr, "0">:$lane);
  let assemblyFormat = [{
    $slot `from` $buffer `as` $type `in` $min `to` $max `node` $node
    `what` $what attr-dict
    `:` qualified(type($buffer))
  }];
  let hasVerifier = 1;
}

#endif // TCC_EXEC_COMMAND
