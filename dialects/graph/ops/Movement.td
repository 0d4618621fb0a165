#ifndef TCC_GRAPH_MOVEMENT
#define TCC_GRAPH_MOVEMENT

include "dialects/graph/GraphDialect.td"

class Graph_Movement<string mnemonic, list<Trait> traits = []>
    : Graph_InferredOp<mnemonic, !listconcat(traits, [PrecisionOpInterface,
        DeclareOpInterfaceMethods<DifferentiableOpInterface>,
        DeclareOpInterfaceMethods<ElementOpInterface>])>;

/// An op whose result type says what it does.
class Graph_TypedMovement<string mnemonic, list<Trait> traits = []>
    : Graph_Op<mnemonic, !listconcat(traits, [Pure, PrecisionOpInterface,
        DeclareOpInterfaceMethods<DifferentiableOpInterface>,
        DeclareOpInterfaceMethods<ElementOpInterface>])> {
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat =
    "operands attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Graph_ReshapeOp : Graph_TypedMovement<"reshape", [
    DeclareOpInterfaceMethods<PermutableOpInterface>]> {
  let summary = "x in other extents, row-major order kept";
  let description = [{
    A view: it costs nothing between kernels.
  }];
  let arguments = (ins AnyRankedTensor:$x);
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def Graph_BroadcastOp : Graph_TypedMovement<"broadcast", [
    DeclareOpInterfaceMethods<PermutableOpInterface>,
    DeclareOpInterfaceMethods<IterationOpInterface>]> {
  let summary = "repeats x along new leading axes and along axes of extent 1";
  let description = [{
    As numpy: axes are aligned at the end; an extent of x is the result's, or the
    constant 1.

    Example: `%y = graph.broadcast %x : (tensor<4x1xf32>) -> tensor<2x4x8xf32>`
  }];
  let arguments = (ins AnyRankedTensor:$x);
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def Graph_TransposeOp : Graph_Movement<"transpose", [
    DeclareOpInterfaceMethods<IterationOpInterface>]> {
  let summary = "result axis i is axis permutation[i] of x";
  let arguments = (ins AnyRankedTensor:$x, DenseI64ArrayAttr:$permutation);
  let assemblyFormat = [{
    $x $permutation attr-dict `:` functional-type(operands, results)
  }];
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def Graph_SliceOp : Graph_TypedMovement<"slice", [
    DeclareOpInterfaceMethods<PermutableOpInterface>,
    DeclareOpInterfaceMethods<IterationOpInterface>]> {
  let summary = "result[i] = x[starts + i * steps]";
  let description = [{
    `starts` holds a size expression and `steps` a non-zero constant per axis.

    Example: `%y = graph.slice %x {starts = affine_map<() -> (2)>,
      steps = array<i64: 1>} : (tensor<8xf32>) -> tensor<4xf32>`
  }];
  let arguments = (ins AnyRankedTensor:$x, AffineMapAttr:$starts,
                       DenseI64ArrayAttr:$steps);
  let hasFolder = 1;
}

def Graph_DynamicSliceOp : Graph_TypedMovement<"dynamic_slice", [
    DeclareOpInterfaceMethods<ShapeConditionOpInterface>]> {
  let summary = "result[i] = x[clamp(starts) + i]";
  let description = [{
    `starts` is i64 with one element per axis, clamped so that the slice lies
    inside x.
  }];
  let arguments = (ins AnyRankedTensor:$x, AnyRankedTensor:$starts);
}

def Graph_ConcatOp : Graph_Movement<"concat", [
    DeclareOpInterfaceMethods<PermutableOpInterface>]> {
  let summary = "operands one after the other along an axis";
  let arguments = (ins Variadic<AnyRankedTensor>:$operands_, I64Attr:$axis);
  let assemblyFormat = [{
    $operands_ attr-dict `:` functional-type(operands, results)
  }];
  let hasFolder = 1;
}

def Graph_PadOp : Graph_Movement<"pad", [
    DeclareOpInterfaceMethods<PermutableOpInterface>]> {
  let summary = "x with a border";
  let description = [{
    `low` and `high` elements are added at the ends of each axis (negative ones
    crop) and, in constant mode, `interior` ones between neighbours. They hold
    the scalar `value`, or what `mode` says.
  }];
  let arguments = (ins AnyRankedTensor:$x, AnyRankedTensor:$value,
                       DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high,
                       DenseI64ArrayAttr:$interior,
                       DefaultValuedAttr<Graph_PadModeAttr,
                         "::tcc::graph::PadMode::constant">:$mode);
}

def Graph_IotaOp : Graph_TypedMovement<"iota"> {
  let summary = "the index along an axis, as a number";
  let description = [{
    Example: `%i = graph.iota {axis = 0} : () -> tensor<8xi64>`
  }];
  let arguments = (ins I64Attr:$axis);
}

#endif // TCC_GRAPH_MOVEMENT
