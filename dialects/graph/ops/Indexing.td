#ifndef TCC_GRAPH_INDEXING
#define TCC_GRAPH_INDEXING

include "dialects/graph/GraphDialect.td"

/// The op checks indices that it reads from data: its kernel needs a fault
/// buffer.
def Graph_ReadsIndices : NativeOpTrait<"ReadsIndices">;

/// Indices are i32 or i64; negative ones count from the end unless the op says
/// otherwise. One out of range sets the fault flag: the run fails naming the
/// node.
class Graph_Gathering<string mnemonic, list<Trait> traits = []>
    : Graph_InferredOp<mnemonic, !listconcat(traits, [Graph_ReadsIndices,
        DeclareOpInterfaceMethods<DifferentiableOpInterface>,
        PrecisionOpInterface, DeclareOpInterfaceMethods<ElementOpInterface>,
        DeclareOpInterfaceMethods<ShapeConditionOpInterface>])>;

def Graph_GatherOp : Graph_Gathering<"gather", [ParameterSlotOpInterface,
    DeclareOpInterfaceMethods<PermutableOpInterface>]> {
  let summary = "slices of x along an axis";
  let description = [{
    result[a..., i..., b...] = x[a..., indices[i...], b...] with `axis` a's.
    With `nonnegative` no index counts from the end: negative ones are out of
    range, as for the classes of a loss.
  }];
  let arguments = (ins AnyRankedTensor:$x, AnyRankedTensor:$indices,
                       I64Attr:$axis, UnitAttr:$nonnegative);
  let extraClassDeclaration = [{
    ::tcc::graph::ParameterSlot getParameterSlot(unsigned operand) {
      return operand == 0 ? ParameterSlot::table : ParameterSlot::none;
    }
  }];
}

def Graph_GatherElementsOp : Graph_Gathering<"gather_elements"> {
  let summary = "result[i] = x[i with i[axis] replaced by indices[i]]";
  let arguments = (ins AnyRankedTensor:$x, AnyRankedTensor:$indices,
                       I64Attr:$axis);
}

def Graph_GatherNdOp : Graph_Gathering<"gather_nd"> {
  let summary = "slices of x at index tuples";
  let description = [{
    result[b..., i..., s...] = x[b..., indices[b..., i..., :]..., s...] with
    `batch_dims` b's; the last axis of indices holds one index per axis of x.
  }];
  let arguments = (ins AnyRankedTensor:$x, AnyRankedTensor:$indices,
                       I64Attr:$batch_dims);
}

class Graph_Scatter<string mnemonic>
    : Graph_Op<mnemonic, [Pure, InferTypeOpAdaptor, Graph_ReadsIndices,
        DeclareOpInterfaceMethods<DifferentiableOpInterface>,
        DeclareOpInterfaceMethods<ScatterOpInterface, ["emitDestination"]>,
        DeclareOpInterfaceMethods<KernelOpInterface>,
        DeclareOpInterfaceMethods<ShapeConditionOpInterface>]> {
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat =
    "operands attr-dict `:` functional-type(operands, results)";
}

def Graph_ScatterElementsOp : Graph_Scatter<"scatter_elements"> {
  let summary = "x with result[i with i[axis] = indices[i]] (kind) updates[i]";
  let description = [{ Updates are applied in row-major order. }];
  let arguments = (ins AnyRankedTensor:$x, AnyRankedTensor:$indices,
                       AnyRankedTensor:$updates, I64Attr:$axis,
                       Graph_ScatterKindAttr:$kind);
}

def Graph_ScatterNdOp : Graph_Scatter<"scatter_nd"> {
  let summary = "x with slices at index tuples combined with updates";
  let description = [{
    result[indices[i..., :]..., s...] (kind) updates[i..., s...], in row-major
    order.
  }];
  let arguments = (ins AnyRankedTensor:$x, AnyRankedTensor:$indices,
                       AnyRankedTensor:$updates, Graph_ScatterKindAttr:$kind);
}

def Graph_TopKOp : Graph_Op<"top_k", [Pure, InferTypeOpAdaptor,
    DeclareOpInterfaceMethods<DifferentiableOpInterface>,
    DeclareOpInterfaceMethods<KernelOpInterface>,
    DeclareOpInterfaceMethods<ShapeConditionOpInterface>]> {
  let summary = "the k largest (or smallest) elements along an axis, sorted";
  let description = [{
    `values` and their i64 `indices`; of equal elements the lower index comes
    first. NaN counts as largest.
  }];
  let arguments = (ins AnyRankedTensor:$x, I64Attr:$k, I64Attr:$axis,
                       UnitAttr:$smallest);
  let results = (outs AnyRankedTensor:$values, AnyRankedTensor:$indices);
  let assemblyFormat =
    "operands attr-dict `:` functional-type(operands, results)";
}

def Graph_FindOp : Graph_Op<"find", [Pure,
    DeclareOpInterfaceMethods<KernelOpInterface, ["readsOnce"]>]> {
  let summary = "the positions (i64) of the true elements of a vector";
  let description = [{
    In order, as many as the result's type says; where x has fewer, 0 follows.

    Example: `%p = graph.find %x : (tensor<9xi1>) -> tensor<4xi64>`
  }];
  let arguments = (ins AnyRankedTensor:$x);
  let results = (outs AnyRankedTensor:$positions);
  let assemblyFormat =
    "operands attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Graph_ChooseBoxesOp : Graph_Op<"choose_boxes", [Pure,
    DeclareOpInterfaceMethods<KernelOpInterface, ["readsOnce"]>]> {
  let summary = "non-maximum suppression";
  let description = [{
    Of each batch and class the candidates in the order of their scores, the
    largest first and of equal ones the first box, but for those that overlap
    one before; `limit` of them at most. Boxes overlap if the area that both
    cover is above 0 and above `threshold` times what either covers.

    `borders` are [batch, 4, box]: the low borders along two axes, then the high
    ones. `scores` and `candidates` are [batch, class, box], `limit` and
    `threshold` scalars; all but candidates, which are i1, and limit, of i64,
    are f32. The result are numbers of boxes (i64), [batch, class, place], -1
    where there are no more.
  }];
  let arguments = (ins AnyRankedTensor:$borders, AnyRankedTensor:$scores,
                       AnyRankedTensor:$candidates, AnyRankedTensor:$limit,
                       AnyRankedTensor:$threshold);
  let results = (outs AnyRankedTensor:$boxes);
  let assemblyFormat =
    "operands attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The most boxes that there are, and that can be chosen.
    ::mlir::AffineExpr getBoxCount() { return getExtent(getScores(), 2); }
    ::mlir::AffineExpr getPlaceCount() { return getExtent(getBoxes(), 2); }
  }];
}

#endif // TCC_GRAPH_INDEXING
