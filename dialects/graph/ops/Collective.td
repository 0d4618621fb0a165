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
                                                NoMemoryEffect])> {
  let results = (outs AnyRankedTensor:$result);
}

def Graph_AllReduceOp : Graph_CollectiveOp<"all_reduce", [
    SameOperandsAndResultType,
    DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "the sum of a tensor over the ranks of a group";
  let description = [{
    result = sum_r x_r. Group 0 is all ranks. Of one rank it is x.

    Example: `%y = graph.all_reduce %x : tensor<4xf32>`
  }];
  let arguments = (ins AnyRankedTensor:$x,
                       DefaultValuedAttr<ConfinedAttr<I64Attr, [IntNonNegative]>, "0">:$group);
  let assemblyFormat = "$x attr-dict `:` type($x)";
}

#endif // TCC_GRAPH_COLLECTIVE
