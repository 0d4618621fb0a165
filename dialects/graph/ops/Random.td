#ifndef TCC_GRAPH_RANDOM
#define TCC_GRAPH_RANDOM

include "dialects/graph/GraphDialect.td"

def Graph_RandomOp : Graph_Op<"random", [Pure,
    DeclareOpInterfaceMethods<ElementOpInterface>]> {
  let summary = "random numbers, each a function of its place";
  let description = [{
    Element i is made from the words of Philox4x32-10 with the key `seed` and the
    counter (i, `step`, `key`): i in row-major order takes two words, the low
    halves of `step` and `key` one each. So the numbers are the same whatever
    the op is fused with, how often it is computed and by how many threads. `key`
    tells the ops of a program apart.

    uniform: in [0, 1), of 24 bits for f32 and 53 for f64. normal: mean 0,
    variance 1, by Box and Muller.

    Example: `%r = graph.random <uniform> %seed, %step {key = 7}
      : (tensor<i64>, tensor<i64>) -> tensor<4x8xf32>`
  }];
  let arguments = (ins Graph_RandomKindAttr:$kind, AnyRankedTensor:$seed,
                       AnyRankedTensor:$step, I64Attr:$key);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $kind $seed `,` $step attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def Graph_DropoutOp : Graph_Op<"dropout", [Pure, InferTypeOpAdaptor]> {
  let summary = "where a model drops elements in training";
  let description = [{
    `result` is x and `mask` all true: nothing is dropped unless a training step
    puts random numbers in the place of the op, which has no kernel. Then an
    element is dropped with probability `p`, which the recipe may change for the
    `site`. `key` tells the ops of a model apart.

    Example: `%y, %kept = graph.dropout %x {key = 0, p = 0.1, site = "drop"}
      : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xi1>)`
  }];
  let arguments = (ins Graph_FloatTensor:$x, F64Attr:$p, StrAttr:$site,
                       I64Attr:$key);
  let results = (outs AnyRankedTensor:$result, AnyRankedTensor:$mask);
  let assemblyFormat = "$x attr-dict `:` functional-type(operands, results)";
}

#endif // TCC_GRAPH_RANDOM
