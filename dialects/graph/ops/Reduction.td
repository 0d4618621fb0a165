#ifndef TCC_GRAPH_REDUCTION
#define TCC_GRAPH_REDUCTION

include "dialects/graph/GraphDialect.td"

def Graph_ReduceOp : Graph_InferredOp<"reduce", [
    DeclareOpInterfaceMethods<DifferentiableOpInterface>,
    DeclareOpInterfaceMethods<PermutableOpInterface>,
    DeclareOpInterfaceMethods<ReductionOpInterface>,
    DeclareOpInterfaceMethods<IterationOpInterface>,
    DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "combines the elements of x along axes";
  let description = [{
    The result has x's extents without `axes` (increasing, non-negative). max and
    min propagate NaN. Sums of f16 and bf16 are taken in f32. An empty reduction
    gives the neutral element.

    Example:
    `%s = graph.reduce <sum> %x [1] : (tensor<4x8xf32>) -> tensor<4xf32>`
  }];
  let arguments = (ins Graph_ReduceKindAttr:$kind, AnyRankedTensor:$x,
                       DenseI64ArrayAttr:$axes);
  let assemblyFormat = [{
    $kind $x $axes attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def Graph_ArgReduceOp : Graph_InferredOp<"arg_reduce", [
    DeclareOpInterfaceMethods<IterationOpInterface>,
    DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "index (i64) of the largest or smallest element along an axis";
  let description = [{
    `kind` is max or min; the result drops `axis`. Of equal elements the first
    one wins, or the last one if `select_last`. NaN wins over all numbers for
    both kinds, as in numpy and PyTorch.
  }];
  let arguments = (ins Graph_ReduceKindAttr:$kind, AnyRankedTensor:$x,
                       I64Attr:$axis, UnitAttr:$select_last);
  let assemblyFormat = [{
    $kind $x attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def Graph_CumulativeOp : Graph_InferredOp<"cumulative", [
    DeclareOpInterfaceMethods<DifferentiableOpInterface>,
    DeclareOpInterfaceMethods<IterationOpInterface>,
    DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "running combination along an axis";
  let description = [{
    result[i] = combine(x[0..i]), or x[0..i-1] if `exclusive`; from the end if
    `reverse`. The result has x's type.
  }];
  let arguments = (ins Graph_ReduceKindAttr:$kind, AnyRankedTensor:$x,
                       I64Attr:$axis, UnitAttr:$exclusive, UnitAttr:$reverse);
  let assemblyFormat = [{
    $kind $x attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

#endif // TCC_GRAPH_REDUCTION
