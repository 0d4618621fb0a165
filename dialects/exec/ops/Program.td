#ifndef TCC_EXEC_PROGRAM
#define TCC_EXEC_PROGRAM

include "dialects/exec/ExecDialect.td"

def Exec_EntryOp : Exec_Op<"entry", [Symbol, IsolatedFromAbove, SingleBlock,
    NoTerminator, NoRegionArguments]> {
  let summary = "an entry point of the package";
  let description = [{
    `slots` counts the size slots, symbols included. That of `rank_slot` has the
    rank of the process, and no command sets it. The plan adds `lanes`,
    `scratch_bytes` (the arena), `scratch_bound` (the most bytes live at once),
    `worker_bytes` (scratch of each thread) and `workspace_bytes` (scratch of
    libraries).

    Example:
    ```mlir
    exec.entry @main inputs [#exec.tensor<"x", tensor<4xf32>>]
        outputs [#exec.tensor<"y", tensor<4xf32>>] {slots = 0 : i64} {
      %x = exec.buffer input 0 bytes affine_map<() -> (16)> bound 16 : <host>
      %y = exec.buffer output 0 bytes affine_map<() -> (16)> bound 16 : <host>
      exec.launch @kernel_0 ins(%x) outs(%y) sizes affine_map<() -> ()>
          tasks affine_map<() -> (1)> node "relu"
          : (!exec.buffer<host>) -> !exec.buffer<host>
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
                       Exec_ArrayOf<Exec_TensorAttr>:$inputs,
                       Exec_ArrayOf<Exec_TensorAttr>:$outputs,
                       DefaultValuedAttr<Exec_ArrayOf<Exec_StateAttr>,
                                         "{}">:$states,
                       I64Attr:$slots,
                       OptionalAttr<I64Attr>:$rank_slot,
                       DefaultValuedAttr<ConfinedAttr<I64Attr, [IntPositive]>, "1">:$lanes,
                       OptionalAttr<I64Attr>:$scratch_bytes,
                       OptionalAttr<I64Attr>:$scratch_bound,
                       OptionalAttr<I64Attr>:$worker_bytes,
                       OptionalAttr<I64Attr>:$workspace_bytes);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name `inputs` $inputs `outputs` $outputs attr-dict-with-keyword $body
  }];
  let hasRegionVerifier = 1;
}

def Exec_KernelOp : Exec_Op<"kernel", [Symbol, IsolatedFromAbove, SingleBlock,
    NoTerminator]> {
  let summary = "a kernel, by the computation that it does";
  let description = [{
    The body's arguments are the kernel's inputs; it holds one `graph.fused` op
    over them, whose results are the kernel's. Code generation reads it.

    It runs on the target of the name `target` (compiler/target), else on the
    host. A kernel of a
    device is launched as a grid of blocks of so many `threads`, which the target
    says (`tcc-select-kernels`); it is `finished`, or the target emits it. A library may do
    `library` instead. `candidates` are kernels that compute the
    same bits with other plans (`tcc-add-candidates`): one of them may run instead.
    A kernel with `symbols` has these in place of the module's: each launch binds
    them to sizes of its own (`tcc-generalize-sizes`).
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
                       OptionalAttr<StrAttr>:$target,
                       OptionalAttr<I64Attr>:$threads,
                       OptionalAttr<Exec_LibraryWorkAttr>:$library,
                       OptionalAttr<Exec_FinishedCodeAttr>:$finished,
                       OptionalAttr<FlatSymbolRefArrayAttr>:$candidates,
                       OptionalAttr<ArrayAttr>:$symbols);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name attr-dict-with-keyword $body";
  let extraClassDeclaration = [{
    /// The one op of the body.
    ::mlir::Operation *getComputation() { return &getBody().front().front(); }
  }];
  let hasRegionVerifier = 1;
}

def Exec_ConstantOp : Exec_Op<"constant"> {
  let summary = "a tensor of the const section";
  let description = [{
    Without `value` it is the model's tensor of that name, or the result of
    `prepare` of that name. Buffers of class `constant` refer to it by position
    among these ops.

    Example: `exec.constant "fc.weight" : tensor<16x8xf32>`
  }];
  let arguments = (ins StrAttr:$name, TypeAttrOf<AnyStaticShapeTensor>:$type,
                       OptionalAttr<ElementsAttr>:$value);
  let assemblyFormat = "$name `:` $type ($value^)? attr-dict";
  let hasVerifier = 1;
}

#endif // TCC_EXEC_PROGRAM
