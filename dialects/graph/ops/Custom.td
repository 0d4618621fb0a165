#ifndef TCC_GRAPH_CUSTOM
#define TCC_GRAPH_CUSTOM

include "dialects/graph/GraphDialect.td"

def Graph_CustomOp : Graph_Op<"custom", [IsolatedFromAbove, Pure,
    DeclareOpInterfaceMethods<DecomposableOpInterface, ["keepWhole"]>,
    DeclareOpInterfaceMethods<DifferentiableOpInterface>,
    DeclareOpInterfaceMethods<ExternalKernelOpInterface>,
    DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "an operator that a plugin defines";
  let description = [{
    `body` computes it from other ops: its arguments are the inputs. `gradient`
    gives the gradients of the inputs that are floats; its arguments are the
    inputs, the results, and the gradients of the results that are floats. Each
    may be empty: then there is none. `kernels` are code for it, at most one a
    target; `flops` is what it computes.

    Example:
    ```mlir
    %y = graph.custom "mine::twice"(%x) : (tensor<4xf32>) -> tensor<4xf32> body {
    ^bb0(%a: tensor<4xf32>):
      %b = graph.add %a, %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      graph.yield %b : tensor<4xf32>
    }
    ```
  }];
  let arguments = (ins StrAttr:$name, Variadic<AnyRankedTensor>:$inputs,
                       OptionalAttr<ArrayAttr>:$kernels,
                       OptionalAttr<AffineMapAttr>:$flops);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let regions = (region AnyRegion:$body, AnyRegion:$gradient);
  let assemblyFormat = [{
    $name `(` $inputs `)` attr-dict `:` functional-type($inputs, $results)
    (`body` $body^)? (`gradient` $gradient^)?
  }];
  let hasVerifier = 1;
}

#endif // TCC_GRAPH_CUSTOM
