#ifndef TCC_GRAPH_ATTENTION
#define TCC_GRAPH_ATTENTION

include "dialects/graph/GraphDialect.td"

/// Scores are query key^T * scale + mask: query [batch..., q, d], key
/// [batch..., k, d]; mask, where present, has the extents [batch..., q, k], of
/// which any but the last two may be the constant 1. A kernel goes over them
/// block by block and stores none. Matrices that are multiplied may be of f16 or
/// bf16, all of one type, where the result is f32.
class Graph_AttentionFamily<string mnemonic, list<Trait> traits = []>
    : Graph_Op<mnemonic, !listconcat(traits, [Pure,
        DeclareOpInterfaceMethods<AttentionOpInterface, ["getMatrices"]>,
        DeclareOpInterfaceMethods<KernelOpInterface>,
        DeclareOpInterfaceMethods<PrecisionOpInterface,
                                  ["getPrecision", "isStoredWide"]>,
        DeclareOpInterfaceMethods<DecomposableOpInterface,
                                  ["isBetterDecomposed", "awaitsPrecision"]>])> {
  let results = (outs AnyRankedTensor:$result);
  let hasVerifier = 1;
}

def Graph_AttentionOp : Graph_AttentionFamily<"attention", [
    DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "softmax(query key^T * scale + mask) value";
  let description = [{
    value is [batch..., k, e]. The extents of the mask's batch axes divide those of
    the scores: index i reads i modulo its extent. A row whose weights are NaN (its scores all -inf,
    or one NaN) gives zeros if `guard`. Where gradients are computed, `normalizer`
    is what attention_normalizer computes.
  }];
  let arguments = (ins Graph_FloatTensor:$query, Graph_FloatTensor:$key,
                       Graph_FloatTensor:$value, Optional<Graph_FloatTensor>:$mask,
                       F64Attr:$scale, UnitAttr:$guard);
  let results = (outs AnyRankedTensor:$result,
                      Optional<AnyRankedTensor>:$normalizer);
  let assemblyFormat = [{
    $query `,` $key `,` $value (`mask` $mask^)? attr-dict
    `:` functional-type(operands, results)
  }];
}

def Graph_AttentionNormalizerOp : Graph_AttentionFamily<"attention_normalizer"> {
  let summary = "log(sum over keys of e^(query key^T * scale + mask))";
  let description = [{
    One number a query, [batch..., q, 1]: weights of attention are
    e^(score - normalizer).

    Example: `%n = graph.attention_normalizer %q, %k {scale = 0.125 : f64}
      : (tensor<2x8x64xf32>, tensor<2x9x64xf32>) -> tensor<2x8x1xf32>`
  }];
  let arguments = (ins Graph_FloatTensor:$query, Graph_FloatTensor:$key,
                       Optional<Graph_FloatTensor>:$mask, F64Attr:$scale);
  let assemblyFormat = [{
    $query `,` $key (`mask` $mask^)? attr-dict
    `:` functional-type(operands, results)
  }];
}

def Graph_AttentionGradientOp : Graph_AttentionFamily<"attention_gradient"> {
  let summary = "the gradient of attention with respect to its operands";
  let description = [{
    With w = e^(score - normalizer), zeros where that is NaN if `guard`, and
    s = w * (gradient value^T - share) * scale, it is s key of the query, s^T query
    of the key and w^T gradient of the value, or [3, batch..., q, d], `all` of these
    in this order, where they have the same extents. `gradient` is that of the
    result; `share`, [batch..., q, 1], its sum of products with the result. Of the
    mask it is s before the scale, in `n` sums, [n, mask...], to be added: of some of
    the scores that read an element each.

    Example: `%d = graph.attention_gradient <query> %q, %k, %v, %dy, %n, %s
      {scale = 0.125 : f64} : (...) -> tensor<2x8x64xf32>`
  }];
  let arguments = (ins Graph_AttentionOperandAttr:$of, Graph_FloatTensor:$query,
                       Graph_FloatTensor:$key, Graph_FloatTensor:$value,
                       Graph_FloatTensor:$gradient, Graph_FloatTensor:$normalizer,
                       Graph_FloatTensor:$share, Optional<Graph_FloatTensor>:$mask,
                       F64Attr:$scale, UnitAttr:$guard);
  let assemblyFormat = [{
    $of $query `,` $key `,` $value `,` $gradient `,` $normalizer `,` $share
    (`mask` $mask^)? attr-dict `:` functional-type(operands, results)
  }];
}

#endif // TCC_GRAPH_ATTENTION
