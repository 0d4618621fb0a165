#ifndef TCC_GRAPH_CONTRACTION
#define TCC_GRAPH_CONTRACTION

include "dialects/graph/GraphDialect.td"

def Graph_MatmulOp : Graph_Op<"matmul", [Pure, ParameterSlotOpInterface,
    DeclareOpInterfaceMethods<DifferentiableOpInterface>,
    DeclareOpInterfaceMethods<PrecisionOpInterface, ["getPrecision"]>,
    DeclareOpInterfaceMethods<IterationOpInterface>,
    DeclareOpInterfaceMethods<ProductOpInterface>,
    DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "batched matrix product";
  let description = [{
    result[b, m, n] = sum_k lhs[b, m, k] * rhs[b, k, n]

    Leading (batch) extents are equal or the constant 1, and may be fewer on one
    side. With `transpose_lhs` lhs is [b, k, m], with `transpose_rhs` rhs is
    [b, n, k]. Products and sums are taken in the result's element type (f32 for
    f16 and bf16), in order of k.

    `packed_rhs`: rhs is [b, ceil(n/w), k, w], zero-padded panels of w = 64
    columns, or where n is less of as many as it needs in sixteens; the result
    type gives n. Panels of bf16 hold pairs of neighbours in k, [k/2][w][2], where
    k is even: what one instruction multiplies and adds.

    `tf32`: a library may round operands of f32 to tf32 (10 bits of mantissa).

    Example: `%c = graph.matmul %a, %b {transpose_rhs}
      : (tensor<4x8xf32>, tensor<16x8xf32>) -> tensor<4x16xf32>`
  }];
  let arguments = (ins AnyRankedTensor:$lhs, AnyRankedTensor:$rhs,
                       UnitAttr:$transpose_lhs, UnitAttr:$transpose_rhs,
                       UnitAttr:$packed_rhs, UnitAttr:$tf32);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat =
    "operands attr-dict `:` functional-type(operands, results)";
  let builders = [OpBuilder<(ins "::mlir::Value":$lhs, "::mlir::Value":$rhs,
    CArg<"bool", "false">:$transposeLhs, CArg<"bool", "false">:$transposeRhs,
    CArg<"::mlir::Type", "{}">:$elementType)>];
  let extraClassDeclaration = Graph_Tf32<>.methods # [{
    ::tcc::graph::ParameterSlot getParameterSlot(unsigned) {
      return ParameterSlot::matrix;
    }
    /// Extents of the operation, whatever the storage of the operands.
    ::mlir::AffineExpr getM();
    ::mlir::AffineExpr getN();
    ::mlir::AffineExpr getK();
    /// Columns in a panel of a packed rhs of `n` columns.
    static int64_t getPanelColumns(int64_t n);
    /// How panels of `elementType` hold `depth` rows of k.
    static ::tcc::graph::Packing getPacking(::mlir::Type elementType,
                                            int64_t depth);
  }];
  let hasVerifier = 1;
}

def Graph_MatmulSumsOp : Graph_Op<"matmul_sums", [Pure,
    DeclareOpInterfaceMethods<IterationOpInterface>,
    DeclareOpInterfaceMethods<ProductOpInterface>,
    DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "matrix product, and the sums of an operand along its depth";
  let description = [{
    result[m, n] = sum_k lhs[m, k] * rhs[k, n]
    sums[n] = sum_k rhs[k, n], with `of_lhs` sums[m] = sum_k lhs[m, k]

    Of matrices, the operands as of `matmul`. Both results have one type of
    elements, in which is summed.

    Example: `%dw, %db = graph.matmul_sums %x, %dy {transpose_lhs}
      : (tensor<4096x8xbf16>, tensor<4096x16xbf16>) -> (tensor<8x16xf32>, tensor<16xf32>)`
  }];
  let arguments = (ins AnyRankedTensor:$lhs, AnyRankedTensor:$rhs,
                       UnitAttr:$transpose_lhs, UnitAttr:$transpose_rhs,
                       UnitAttr:$of_lhs);
  let results = (outs AnyRankedTensor:$result, AnyRankedTensor:$sums);
  let assemblyFormat =
    "operands attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = [{
    ::mlir::AffineExpr getM();
    ::mlir::AffineExpr getN();
    ::mlir::AffineExpr getK();
  }];
  let hasVerifier = 1;
}

#endif // TCC_GRAPH_CONTRACTION
