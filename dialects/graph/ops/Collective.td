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

// Parts of a bucket: rank r of N, which the module's `graph.ranks` says, has the
// elements [r * n, (r + 1) * n) of its memory, whose bytes are those of N parts.
// The names are those of all of its variables, in its order.

def Graph_ReduceScatterOp : Graph_CollectiveOp<"reduce_scatter"> {
  let summary = "the sums of a bucket over the ranks, of which each has its part";
  let description = [{
    result[i] = sum_r x_r[rank * n + i], i < n, where x is the memory of the
    bucket with the tensors in it. What the other parts hold afterwards is
    undefined: the function writes the variables new values.

    Example: `%part = graph.reduce_scatter %x, %y into ["gradient/a", "gradient/b"]
      : (tensor<4xf32>, tensor<8xf32>) -> tensor<16xf32>`
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$tensors, StrArrayAttr:$into);
  let results = (outs 1DTensorOf<[AnyType]>:$part);
  let assemblyFormat = [{
    $tensors `into` $into attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def Graph_PartOp : Graph_Op<"part", [NoMemoryEffect]> {
  let summary = "a rank's part of the variables of a bucket";
  let description = [{
    result[i] = x[rank * n + i], i < n, where x is the memory of the bucket. The
    tensors are what the function was given as the values of the variables, or
    sums over the ranks that lie there.

    Example: `%part = graph.part %a, %b of ["a", "b"]
      : (tensor<4xf32>, tensor<8xf32>) -> tensor<16xf32>`
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$tensors, StrArrayAttr:$of);
  let results = (outs 1DTensorOf<[AnyType]>:$part);
  let assemblyFormat = [{
    $tensors `of` $of attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def Graph_AllGatherOp : Graph_CollectiveOp<"all_gather"> {
  let summary = "the variables of a bucket of which each rank has a part";
  let description = [{
    x[r * n + i] = part_r[i], i < n, for each rank r, where x is the memory of the
    bucket, and the results are the tensors in it. The function writes them to
    the variables, whose old values are not used afterwards.

    Example: `%a, %b = graph.all_gather %part into ["a", "b"]
      : (tensor<16xf32>) -> (tensor<4xf32>, tensor<8xf32>)`
  }];
  let arguments = (ins 1DTensorOf<[AnyType]>:$part, StrArrayAttr:$into);
  let results = (outs Variadic<AnyRankedTensor>:$tensors);
  let assemblyFormat = [{
    $part `into` $into attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

#endif // TCC_GRAPH_COLLECTIVE
