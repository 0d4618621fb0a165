#ifndef TCC_GRAPH_COLLECTIVE
#define TCC_GRAPH_COLLECTIVE

include "dialects/graph/GraphDialect.td"

/// Ranks wait for each other in the op.
def Graph_IsCollective : NativeOpTrait<"IsCollective">;

/// An op that the ranks of a group do together, all in the same order. It has no
/// effect on memory, but ranks wait in it: it must not be computed where, or
/// oftener than, the program says.
class Graph_CollectiveOp<string mnemonic, list<Trait> traits = []>
    : Graph_Op<mnemonic, !listconcat(traits, [Graph_IsCollective,
                                                NoMemoryEffect])>;

def Graph_AllReduceOp : Graph_CollectiveOp<"all_reduce", [
    DeclareOpInterfaceMethods<InferTypeOpInterface>,
    DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "the sums of tensors over the ranks of a group";
  let description = [{
    result = sum_r x_r, of each tensor. Group 0 is all ranks. Of one rank it is x.

    With `into`, the names of variables of one bucket, in its order, one a tensor,
    the sums are made where these variables lie, by one message. Their old values
    are not used afterwards, and the function writes them new ones.

    With `tree` they are added in one binary tree over the ranks in bit-reversed
    order, a power of two of them: first those that are half their number apart,
    then a quarter, and so on, the lower one on the left.

    Example: `%y = graph.all_reduce %x : tensor<4xf32>`,
    `%a, %b = graph.all_reduce %x, %y into ["gradient/a", "gradient/b"]
      : tensor<4xf32>, tensor<8xf32>`
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$tensors,
                       OptionalAttr<StrArrayAttr>:$into,
                       DefaultValuedAttr<ConfinedAttr<I64Attr, [IntNonNegative]>, "0">:$group,
                       UnitAttr:$tree);
  let results = (outs Variadic<AnyRankedTensor>:$sums);
  let assemblyFormat = "$tensors (`into` $into^)? attr-dict `:` type($tensors)";
  let hasVerifier = 1;
}

#endif // TCC_GRAPH_COLLECTIVE
