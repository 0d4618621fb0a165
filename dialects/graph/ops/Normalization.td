#ifndef TCC_GRAPH_NORMALIZATION
#define TCC_GRAPH_NORMALIZATION

include "dialects/graph/GraphDialect.td"

/// Floats only. The loops are the axes of x; those normalised over are
/// reductions, and every result element needs the whole row.
class Graph_Normalization<string mnemonic, list<Trait> traits = []>
    : Graph_InferredOp<mnemonic, !listconcat(traits, [
        DeclareOpInterfaceMethods<DecomposableOpInterface>,
        DeclareOpInterfaceMethods<DifferentiableOpInterface>,
        DeclareOpInterfaceMethods<IterationOpInterface>,
        DeclareOpInterfaceMethods<KernelOpInterface>])>;

def Graph_SoftmaxOp : Graph_Normalization<"softmax", [
    DeclareOpInterfaceMethods<PermutableOpInterface>]> {
  let summary = "e^(x - max) / sum e^(x - max) along an axis";
  let arguments = (ins Graph_FloatTensor:$x, I64Attr:$axis);
  let hasVerifier = 1;
}
def Graph_LogSoftmaxOp : Graph_Normalization<"log_softmax", [
    DeclareOpInterfaceMethods<PermutableOpInterface>]> {
  let summary = "log(softmax(x)) = x - max - log(sum e^(x - max))";
  let arguments = (ins Graph_FloatTensor:$x, I64Attr:$axis);
  let hasVerifier = 1;
}

def Graph_LayerNormOp : Graph_Normalization<"layer_norm", [
    AttrSizedOperandSegments, ParameterSlotOpInterface,
    DeclareOpInterfaceMethods<PermutableOpInterface>]> {
  let summary = "(x - mean) / sqrt(var + epsilon) * scale + shift";
  let description = [{
    Mean and biased variance over the axes [axis, rank), in f32 for narrower
    floats. scale and shift, where present, have the extents of those axes.
  }];
  let arguments = (ins Graph_FloatTensor:$x, Optional<Graph_FloatTensor>:$scale,
                       Optional<Graph_FloatTensor>:$shift, I64Attr:$axis,
                       F64Attr:$epsilon);
  let assemblyFormat = [{
    $x (`scale` $scale^ `:` type($scale))? (`shift` $shift^ `:` type($shift))?
    attr-dict `:` type($x) `->` type($result)
  }];
  let extraClassDeclaration = [{
    ::tcc::graph::ParameterSlot getParameterSlot(unsigned operand) {
      if (operand == 0)
        return ParameterSlot::none;
      return operand == 1 && getScale() ? ParameterSlot::norm_scale
                                        : ParameterSlot::norm_shift;
    }
  }];
  let hasVerifier = 1;
}

def Graph_RmsNormOp : Graph_Normalization<"rms_norm",
    [ParameterSlotOpInterface]> {
  let summary = "x / sqrt(mean(x^2) + epsilon) * scale over [axis, rank)";
  let arguments = (ins Graph_FloatTensor:$x, Optional<Graph_FloatTensor>:$scale,
                       I64Attr:$axis, F64Attr:$epsilon);
  let assemblyFormat = [{
    $x (`scale` $scale^ `:` type($scale))? attr-dict
    `:` type($x) `->` type($result)
  }];
  let extraClassDeclaration = [{
    ::tcc::graph::ParameterSlot getParameterSlot(unsigned operand) {
      return operand == 1 ? ParameterSlot::norm_scale : ParameterSlot::none;
    }
  }];
  let hasVerifier = 1;
}

def Graph_BatchNormOp : Graph_InferredOp<"batch_norm", [
    DeclareOpInterfaceMethods<DecomposableOpInterface>,
    DeclareOpInterfaceMethods<DifferentiableOpInterface>,
    ParameterSlotOpInterface]> {
  let summary = "(x - mean) / sqrt(variance + epsilon) * scale + shift";
  let description = [{
    Inference form: x is [batch, channel, ...], the other operands [channel], of
    its element type. In training, `momentum` is the part of a batch's statistics
    in the new running ones. Decomposes to x * a + b, where a and b come from the other
    operands alone: those that are weights are then folded into a convolution or
    matmul that makes x.
  }];
  let arguments = (ins Graph_FloatTensor:$x, Graph_FloatTensor:$scale,
                       Graph_FloatTensor:$shift, Graph_FloatTensor:$mean,
                       Graph_FloatTensor:$variance, F64Attr:$epsilon,
                       DefaultValuedAttr<F64Attr, "0.1">:$momentum);
  let extraClassDeclaration = [{
    ::tcc::graph::ParameterSlot getParameterSlot(unsigned operand) {
      constexpr ParameterSlot kSlots[] = {
          ParameterSlot::none, ParameterSlot::norm_scale,
          ParameterSlot::norm_shift, ParameterSlot::statistic,
          ParameterSlot::statistic};
      return kSlots[operand];
    }
  }];
  let hasVerifier = 1;
}

def Graph_BatchStatisticsOp : Graph_Op<"batch_statistics", [Pure,
    InferTypeOpAdaptor, DeclareOpInterfaceMethods<DecomposableOpInterface>,
    DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "mean and variance of each channel over batch and space";
  let description = [{
    mean[c] is that of x[b, c, ...], variance[c] that of (x[b, c, ...] - mean[c])^2.
    What changes the mean alone does not change the variance, which its derivative
    knows and that of the formula does not.

    Example: `%mean, %variance = graph.batch_statistics %x
      : (tensor<4x8x6x6xf32>) -> (tensor<8xf32>, tensor<8xf32>)`
  }];
  let arguments = (ins Graph_FloatTensor:$x);
  let results = (outs Graph_FloatTensor:$mean, Graph_FloatTensor:$variance);
  let assemblyFormat = "$x attr-dict `:` functional-type(operands, results)";
}

#endif // TCC_GRAPH_NORMALIZATION
