#ifndef TCC_EXEC_BUFFER
#define TCC_EXEC_BUFFER

include "dialects/exec/ExecDialect.td"

def Exec_BufferOp : Exec_Op<"buffer"> {
  let summary = "bytes with a storage class";
  let description = [{
    `index` is the position in the entry's inputs, outputs or states, among the
    `exec.constant` ops, the tensors of the model, or the variables. `bytes` is
    the size, `bound` its value at the upper bounds of all symbols.

    Scratch holds nothing of value at the start of its block, and the memory plan
    gives it its `offset` in the arena. A state is what is read, or with `next`
    what is written for the next run; `in_place` says that both are one.

    Example: `%0 = exec.buffer scratch bytes affine_map<()[s0] -> (s0 * 4)>
      bound 32 : <host>`
  }];
  let arguments = (ins Exec_StorageClassAttr:$storage,
                       OptionalAttr<I64Attr>:$index,
                       AffineMapAttr:$bytes, I64Attr:$bound,
                       OptionalAttr<I64Attr>:$offset,
                       UnitAttr:$next, UnitAttr:$in_place);
  let results = (outs Exec_BufferType:$result);
  let assemblyFormat = [{
    custom<Storage>($storage) ($index^)? `bytes` $bytes `bound` $bound
    (`offset` $offset^)? (`next` $next^)? (`in_place` $in_place^)? attr-dict
    `:` qualified(type($result))
  }];
  let hasVerifier = 1;
}

def Exec_ViewOp : Exec_Op<"view", [AllTypesMatch<["base", "result"]>]> {
  let summary = "part of a buffer";
  let description = [{
    Its address is that of `base` plus `offset`, with the slots as they are when
    a command uses the view.

    Example: `%1 = exec.view %0 at affine_map<()[s0] -> (s0 * 64)>
      bytes affine_map<() -> (64)> bound 64 : !exec.buffer<host>`
  }];
  let arguments = (ins Exec_BufferType:$base, AffineMapAttr:$offset,
                       AffineMapAttr:$bytes, I64Attr:$bound);
  let results = (outs Exec_BufferType:$result);
  let assemblyFormat = [{
    $base `at` $offset `bytes` $bytes `bound` $bound attr-dict
    `:` qualified(type($base))
  }];
  let hasVerifier = 1;
}

#endif // TCC_EXEC_BUFFER
