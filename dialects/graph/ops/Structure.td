#ifndef TCC_GRAPH_STRUCTURE
#define TCC_GRAPH_STRUCTURE

include "dialects/graph/GraphDialect.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"

def Graph_ConstantOp : Graph_Op<"constant", [ConstantLike, Pure,
    AllTypesMatch<["value", "result"]>]> {
  let summary = "a small known tensor";
  let description = [{
    At most 64 KiB; larger values are weights.

    Example: `%c = graph.constant dense<1.0> : tensor<4xf32>`
  }];
  let arguments = (ins ElementsAttr:$value);
  let results = (outs AnyStaticShapeTensor:$result);
  let assemblyFormat = "attr-dict $value";
  let hasFolder = 1;
}

def Graph_WeightOp : Graph_Op<"weight", [Pure]> {
  let summary = "a tensor of the weight store";
  let description = [{
    The values are in the weight store under `name`; they may be replaced after
    compilation, so that nothing here may depend on them.

    Example: `%w = graph.weight "fc.weight" : tensor<10x20xf32>`
  }];
  let arguments = (ins StrAttr:$name);
  let results = (outs AnyStaticShapeTensor:$result);
  let assemblyFormat = "$name attr-dict `:` type($result)";
}

def Graph_SizeOp : Graph_Op<"size", [Pure, InferTypeOpAdaptor,
    DeclareOpInterfaceMethods<ElementOpInterface>]> {
  let summary = "the value of a size expression";
  let description = [{
    result = expression(symbols), an i64 scalar.

    Example: `%n = graph.size affine_map<()[s0] -> (s0 * 2)>`
  }];
  let arguments = (ins AffineMapAttr:$expression);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$expression attr-dict";
  let hasFolder = 1;
}

def Graph_ReadSizeOp : Graph_Op<"read_size", [
    DeclareOpInterfaceMethods<SizeDefinitionOpInterface>]> {
  let summary = "a computed symbol is the integer in a tensor";
  let description = [{
    `symbol` is a computed symbol alone. A run fails where the integer lies
    outside of the symbol's range, and says what it is the size of: `what`.

    Example: `graph.read_size %n to affine_map<()[s0, s1] -> (s1)>
      {what = "axis 1"} : tensor<i64>`
  }];
  let arguments = (ins AnyRankedTensor:$size, AffineMapAttr:$symbol,
                       StrAttr:$what);
  let assemblyFormat = "$size `to` $symbol attr-dict `:` type($size)";
  let hasVerifier = 1;
}

def Graph_FusedOp : Graph_Op<"fused", [IsolatedFromAbove, Pure,
    SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "a region that becomes one kernel";
  let description = [{
    The body's arguments are the inputs. `kind` is the loop structure. The body
    holds pointwise and element ops and those of the kind.

    Example:
    ```mlir
    %y = graph.fused <pointwise> (%x) : (tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%a: tensor<4xf32>):
      %b = graph.exp %a : (tensor<4xf32>) -> tensor<4xf32>
      graph.yield %b : tensor<4xf32>
    }
    ```
  }];
  let arguments = (ins Graph_KernelKindAttr:$kind,
                       Variadic<AnyRankedTensor>:$inputs);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $kind ` ` `(` $inputs `)` attr-dict `:` functional-type($inputs, $results)
    $body
  }];
  let hasVerifier = 1;
}

def Graph_YieldOp : Graph_Op<"yield", [Pure, ReturnLike, Terminator]> {
  let summary = "ends a region with its results";
  let arguments = (ins Variadic<AnyRankedTensor>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
  let builders = [OpBuilder<(ins), [{}]>];
}

#endif // TCC_GRAPH_STRUCTURE
