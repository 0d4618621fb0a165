#ifndef TCC_GRAPH_CONVOLUTION
#define TCC_GRAPH_CONVOLUTION

include "dialects/graph/GraphDialect.td"

/// Ops that slide a window over the spatial axes of x: [batch, channel,
/// spatial...], or [batch, spatial..., channel] with `channels_last`; the result
/// has the same layout. One entry per spatial axis in every array:
/// out = floor((in + pad_low + pad_high - ((window-1) * dilation + 1)) / stride) + 1
class Graph_WindowOp<string mnemonic, Trait typing, list<Trait> traits = []>
    : Graph_Op<mnemonic, !listconcat(traits, [Pure, typing,
        DeclareOpInterfaceMethods<DifferentiableOpInterface>,
        DeclareOpInterfaceMethods<PrecisionOpInterface, ["getPrecision"]>,
        DeclareOpInterfaceMethods<IterationOpInterface, ["getLoopExtents"]>,
        DeclareOpInterfaceMethods<KernelOpInterface>])> {
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat =
    "operands attr-dict `:` functional-type(operands, results)";
  dag window = (ins DenseI64ArrayAttr:$window, DenseI64ArrayAttr:$strides,
                    DenseI64ArrayAttr:$pad_low, DenseI64ArrayAttr:$pad_high,
                    DenseI64ArrayAttr:$dilations, UnitAttr:$channels_last);
  let hasVerifier = 1;
  code axes = [{
    int64_t getChannelAxis() {
      return getChannelsLast() ? getX().getType().getRank() - 1 : 1;
    }
    /// The axis of the first entry of the window.
    int64_t getFirstSpatialAxis() { return getChannelsLast() ? 1 : 2; }
  }];
  let extraClassDeclaration = axes;
}

def Graph_ConvOp : Graph_WindowOp<"conv", InferTypeOpAdaptorWithIsCompatible,
    [ParameterSlotOpInterface, DeclareOpInterfaceMethods<ProductOpInterface>]> {
  let summary = "convolution (cross-correlation), zero padding";
  let description = [{
    result[b, o, p] = sum_{c, w} x[b, g(o) C + c, p * stride + w * dilation -
    pad_low] * filter[o, c, w], where the channels of x and the filters are split
    into `groups` equal groups and C is the channels of one group.

    filter is [filters, channels / groups, window...], with `channels_last`
    [filters, window..., channels / groups]. `packed_filter`, which goes with
    `channels_last`: it is in panels like the rhs of a matmul, [groups,
    ceil(filters/groups/w), window * channels/groups, w], and `filters` gives
    their number; of a conv that slides it is [window * channels/groups, filters].
    Of bf16 the panels hold pairs; a zero follows an odd number of rows.

    The result of narrower floats may be f32: the sums as they are. `tf32` is as
    of a matmul.

    `input_dilations`, of a conv that slides with the channels last: x counts as
    if it had d - 1 zeros between its elements along a spatial axis, which are not
    multiplied; where d > 1 strides and dilations are 1 and pad_low is not negative.

    `zero_taps` promises zeros, which need not be multiplied: the filters are as
    many equal parts as it has entries, and those of a part are zero at each tap,
    counted in order of the window, whose bit is set in its entry.
  }];
  let arguments = !con((ins AnyRankedTensor:$x, AnyRankedTensor:$filter,
                            I64Attr:$filters, I64Attr:$groups), window,
                       (ins UnitAttr:$packed_filter, UnitAttr:$tf32,
                            OptionalAttr<DenseI64ArrayAttr>:$zero_taps,
                            OptionalAttr<DenseI64ArrayAttr>:$input_dilations));
  let extraClassDeclaration = axes # Graph_Tf32<>.methods # [{
    ::tcc::graph::ParameterSlot getParameterSlot(unsigned operand) {
      return operand == 1 ? ParameterSlot::matrix : ParameterSlot::none;
    }
    /// Channels of one group.
    int64_t getGroupChannels();
    /// Whether its groups are narrow, see areNarrow.
    bool hasNarrowGroups();
    /// True if the op slides like a pool, rather than contracting channels: with
    /// one channel a group or, with the channels last, narrow groups.
    bool slides();
    /// Of spatial axis `i`; 1 where x is as it is.
    int64_t getInputDilation(size_t i) {
      auto dilations = getInputDilations();
      return dilations ? (*dilations)[i] : 1;
    }
    /// How panels of the filter hold rows of k.
    ::tcc::graph::Packing getPacking();
  }];
}

def Graph_ConvTransposeOp : Graph_Op<"conv_transpose", [Pure, InferTypeOpAdaptor,
    ParameterSlotOpInterface,
    DeclareOpInterfaceMethods<IterationOpInterface, ["getLoopExtents"]>,
    DeclareOpInterfaceMethods<DifferentiableOpInterface>,
    DeclareOpInterfaceMethods<DecomposableOpInterface>]> {
  let summary = "transposed convolution: adds up a window for each position of x";
  let description = [{
    result[b, g F + f, p * stride + w * dilation - pad_low] is the sum over c, p
    and w of x[b, g C + c, p] * filter[g C + c, f, w], where C and F are the
    channels of x and of the result in one of `groups` equal groups. One entry
    per spatial axis in every array:
    out = (in - 1) * stride + (window - 1) * dilation + 1 - pad_low - pad_high
    A negative pad adds zeros.

    It is the gradient with respect to x of a conv with the same filter and
    attributes. x is [batch, channels, spatial...], filter is [channels of x,
    channels of the result / groups, window...].

    Example: `%y = graph.conv_transpose %x, %filter {window = array<i64: 4>,
      strides = array<i64: 2>, pad_low = array<i64: 1>, pad_high = array<i64: 1>,
      dilations = array<i64: 1>, groups = 1 : i64}
      : (tensor<1x8x10xf32>, tensor<8x5x4xf32>) -> tensor<1x5x20xf32>`
  }];
  let arguments = (ins AnyRankedTensor:$x, AnyRankedTensor:$filter,
                       I64Attr:$groups, DenseI64ArrayAttr:$window,
                       DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$pad_low,
                       DenseI64ArrayAttr:$pad_high,
                       DenseI64ArrayAttr:$dilations);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat =
    "operands attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = [{
    ::tcc::graph::ParameterSlot getParameterSlot(unsigned operand) {
      return operand == 1 ? ParameterSlot::matrix : ParameterSlot::none;
    }
  }];
}

def Graph_ConvFilterGradientOp : Graph_Op<"conv_filter_gradient", [Pure,
    InferTypeOpAdaptorWithIsCompatible,
    DeclareOpInterfaceMethods<IterationOpInterface>,
    DeclareOpInterfaceMethods<ProductOpInterface>,
    DeclareOpInterfaceMethods<KernelOpInterface>,
    DeclareOpInterfaceMethods<PrecisionOpInterface, ["getPrecision"]>,
    DeclareOpInterfaceMethods<DecomposableOpInterface,
                              ["isBetterDecomposed"]>]> {
  let summary = "gradient of a convolution with respect to its filter";
  let description = [{
    result[o, w, c] = sum_{b, p} x[b, p * stride + w * dilation - pad_low,
    g(o) C + c] * gradient[b, p, o], with channels last, as of a conv that has x
    and whose result has `gradient`. Products are summed in order of (b, p). The
    result's type and `tf32` are as of a conv.

    Example: `%d = graph.conv_filter_gradient %x, %gradient {window = array<i64: 3>,
      strides = array<i64: 1>, pad_low = array<i64: 1>, dilations = array<i64: 1>,
      groups = 1 : i64}
      : (tensor<2x8x16xf32>, tensor<2x8x32xf32>) -> tensor<32x3x16xf32>`
  }];
  let arguments = (ins AnyRankedTensor:$x, AnyRankedTensor:$gradient,
                       DenseI64ArrayAttr:$window, DenseI64ArrayAttr:$strides,
                       DenseI64ArrayAttr:$pad_low, DenseI64ArrayAttr:$dilations,
                       I64Attr:$groups, UnitAttr:$tf32);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat =
    "operands attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let extraClassDeclaration = Graph_Tf32<>.methods # [{
    bool isStoredAsRead() { return true; }
    /// True if each group is so narrow that its products are summed under the
    /// window, in its own layout, rather than as a matrix product.
    bool slides();
  }];
}

def Graph_PoolOp : Graph_WindowOp<"pool", InferTypeOpAdaptor, [
    DeclareOpInterfaceMethods<PermutableOpInterface>]> {
  let summary = "combines the elements of each window";
  let description = [{
    Windows may reach over the padded border by `pad_low` and `pad_high` (which
    includes what ceil mode adds): max ignores such elements (a window of only
    those is -inf), sum and average take them as 0. average, of floats, divides by
    the elements inside x, or with `count_padding` by those inside
    [-count_low, extent + count_high) of each axis.
  }];
  let arguments = !con((ins Graph_PoolKindAttr:$kind, AnyRankedTensor:$x),
                       window, (ins UnitAttr:$count_padding,
                                    DenseI64ArrayAttr:$count_low,
                                    DenseI64ArrayAttr:$count_high));
  let assemblyFormat = [{
    $kind $x attr-dict `:` functional-type(operands, results)
  }];
}

#endif // TCC_GRAPH_CONVOLUTION
