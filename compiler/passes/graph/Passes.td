#ifndef TCC_GRAPH_PASSES
#define TCC_GRAPH_PASSES

include "mlir/Pass/PassBase.td"

class TccGraphPass<string mnemonic> : Pass<"tcc-" # mnemonic, "mlir::ModuleOp"> {
  let dependentDialects = ["::tcc::graph::GraphDialect"];
}

def SimplifyPass : TccGraphPass<"simplify"> {
  let summary = "canonicalise, evaluate constants, remove what is not needed";
  let description = [{
    Folders, canonicalisation patterns, constant evaluation by the reference
    evaluator (results of at most 64 KiB) and common subexpressions, until
    nothing changes; rewrites that come to no end are an internal error.
    Identities hold bit for bit but for pow(x, 2) and pow(x, 3).
    Afterwards a constant of equal elements is a broadcast scalar, and an `if`
    on a constant is the branch taken.

    ```mlir
    %c = graph.constant dense<1.0> : tensor<4xf32>
    %y = graph.mul %x, %c : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    // becomes %x
    ```
  }];
}

def BindSymbolsPass : TccGraphPass<"bind-symbols"> {
  let summary = "give symbols their values";
  let description = [{
    Types and size expressions become those of these sizes, as if the model had
    been imported with them; other symbols stay. What follows from the sizes is
    left to simplify. Values lie in the ranges of their symbols.

    ```mlir
    // graph.symbols = [#graph.symbol<"n", 1 to 8 by 1>], with values=n=3
    %y = graph.exp %x : tensor<?x4xf32, affine_map<()[s0] -> (s0, 4)>>
    // becomes
    %y = graph.exp %x : tensor<3x4xf32>
    ```
  }];
  let options = [ListOption<"values", "values", "std::string",
                            "NAME=N, each the value of a symbol">];
}

def RecognizeActivationsPass : TccGraphPass<"recognize-activations"> {
  let summary = "find activations that exporters wrote out";
  let description = [{
    GELU (erf and tanh forms), SiLU, hard swish, hard sigmoid and sigmoid by
    their structure, constants as the element type rounds them, whatever the
    order of factors. log(1 + exp(x)) stays: it overflows where softplus does
    not. Expects the form that simplify leaves.

    ```mlir
    %s = graph.sigmoid %x : (tensor<4xf32>) -> tensor<4xf32>
    %y = graph.mul %x, %s : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    // becomes
    %y = graph.silu %x : (tensor<4xf32>) -> tensor<4xf32>
    ```
  }];
}

def RecognizeNormsPass : TccGraphPass<"recognize-norms"> {
  let summary = "find layer and rms norms that exporters wrote out";
  let description = [{
    x / sqrt(mean(x^2) + epsilon) over the last axes becomes rms_norm, or
    layer_norm where x is centered; a scale and shift of those axes go in. The
    root may divide, or be inverted and multiply. Expects the form that simplify
    leaves. Where a reshape merges the axes of a layer_norm, it goes over the axes
    themselves: [n, c, h, w] as [n, g, c / g * h * w] is [n, g, c / g, h, w]; so do
    factors and terms behind it, of each group and of each channel.
  }];
}

def RecognizeSoftmaxPass : TccGraphPass<"recognize-softmax"> {
  let summary = "find softmax and log_softmax that exporters wrote out";
  let description = [{
    exp(x - max) / sum along one axis, also as a product with the sum's
    reciprocal, and (x - max) - log(sum(exp(x - max))). Without the maximum's
    subtraction it overflows where softmax does not, and stays as it is.
  }];
}

def RecognizeAttentionPass : TccGraphPass<"recognize-attention"> {
  let summary = "find attention that exporters wrote out";
  let description = [{
    softmax(query key^T * scale + mask) value, with the scale anywhere before the
    mask, and NaN weights replaced by zeros or not. Scores or weights that
    something else reads stay.

    ```mlir
    %s = graph.matmul %q, %k {transpose_rhs} : ...
    %w = graph.softmax %s {axis = 2 : i64} : ...
    %y = graph.matmul %w, %v : ...
    // becomes
    %y = graph.attention %q, %k, %v {scale = 1.0 : f64} : ...
    ```
  }];
  let options = [Option<"fitsTensorCores", "fits-tensor-cores", "bool", "false",
    "only what has kernels on these, and its gradients too">];
}

def GroupHeadsPass : TccGraphPass<"group-heads"> {
  let summary = "read a key and value that heads share once";
  let description = [{
    Where key and value are heads repeated for a group of the query's each, the
    heads of a group become rows below each other, and the repeats go away.

    ```mlir
    %k = graph.reshape %r : (tensor<1x4x3x8x64xf32>) -> tensor<1x12x8x64xf32>
    %y = graph.attention %q, %k, %v ... -> tensor<1x12x5x64xf32>
    // becomes, as %r repeats %x
    %g = graph.reshape %q : (tensor<1x12x5x64xf32>) -> tensor<1x4x15x64xf32>
    %a = graph.attention %g, %x, %w ... -> tensor<1x4x15x64xf32>
    %y = graph.reshape %a : (tensor<1x4x15x64xf32>) -> tensor<1x12x5x64xf32>
    ```
  }];
}

def FoldBatchNormPass : TccGraphPass<"fold-batch-norm"> {
  let summary = "scale weights instead of activations";
  let description = [{
    Decomposes batch norms, then moves a factor per channel behind a convolution
    or matmul into its weight, past the bias: by ordinary ops that depend on
    weights alone, so that they become part of `prepare` and new weights are
    folded again. Products that exporters leave behind a convolution fold too.
    Behind other ops, factors and terms that are weights become one factor and one
    term.

    ```mlir
    %c = graph.conv %x, %w ...
    %y = graph.mul %c, %a      // %a: one factor per channel
    // becomes
    %v = graph.mul %w, %a      // %a: along the filters
    %y = graph.conv %x, %v ...
    ```
  }];
}

def ChannelsLastPass : TccGraphPass<"channels-last"> {
  let summary = "convolutions with the channels innermost";
  let description = [{
    With the channels last, the channels of a pixel are adjacent: patches are
    runs of memory and vectors run along the filters. Convolutions become such
    ones between transposes; a transpose back moves behind the ops that read it,
    through PermutableOpInterface and pointwise ops, until it meets the transpose
    before the next convolution. Norms become their formulas there: their rows
    are axes that lie apart. Where pixels or channels are shuffled, the transpose
    that does so leaves the channels last. It stays where going on would move
    more bytes.
    Depthwise convolutions stay as they are where their filters would not fill a
    vector, or one channel has many.

    ```mlir
    %c = graph.conv %x, %w ...   : (tensor<1x8x5x5xf32>, ...) -> tensor<1x16x5x5xf32>
    %y = graph.relu %c
    // becomes
    %l = graph.transpose %x [0, 2, 3, 1]
    %v = graph.transpose %w [0, 2, 3, 1]
    %c = graph.conv %l, %v {channels_last} ... -> tensor<1x5x5x16xf32>
    %r = graph.relu %c
    %y = graph.transpose %r [0, 3, 1, 2]
    ```
  }];
}

def SumOperandsPass : TccGraphPass<"sum-operands"> {
  let summary = "sum columns of what a product reads along its depth behind it";
  let description = [{
    The gradient of a bias is a sum over what the product for the gradient of the
    weight reads anyway, along its depth: libraries store both. That saves a
    launch and reading the tensor again, unless the kernel that makes the tensor
    can sum its columns on the way: rows and pointwise ops do, matrix kernels do
    not.

    ```mlir
    %dy = graph.cast %product
    %dw = graph.matmul %x, %dy {transpose_lhs} : (tensor<64x8xbf16>, tensor<64x16xbf16>) -> tensor<8x16xf32>
    %w = graph.cast %dy : (tensor<64x16xbf16>) -> tensor<64x16xf32>
    %db = graph.reduce <sum> %w [0] : (tensor<64x16xf32>) -> tensor<16xf32>
    // becomes
    %dw, %db = graph.matmul_sums %x, %dy {transpose_lhs}
    ```
  }];
}

def SplitReductionsPass : TccGraphPass<"split-reductions"> {
  let summary = "reduce long columns in several steps";
  let description = [{
    Where the last axis is kept, the elements of a column are combined one after
    the other. Columns of many elements, along several axes, are reduced along the
    last of these axes first: the parts are computed in parallel, and rounding
    errors grow with the steps of each instead of all. An axis of many elements is
    cut into panels: those of rows that a kernel reduces anyway can be part of it.

    ```mlir
    %s = graph.reduce <sum> %x [0, 1, 2] : (tensor<8x56x56x64xf32>) -> tensor<64xf32>
    // becomes
    %w = graph.reduce <sum> %x [2] : (tensor<8x56x56x64xf32>) -> tensor<8x56x64xf32>
    %s = graph.reduce <sum> %w [0, 1] : (tensor<8x56x64xf32>) -> tensor<64xf32>
    ```
  }];
}

def MixPrecisionPass : TccGraphPass<"mix-precision"> {
  let summary = "let products read a narrower float type";
  let description = [{
    Ops say by PrecisionOpInterface what becomes of them. Those that are narrow
    read f32 operands in `type`; their sums stay f32. Each value that one of them
    reads is rounded where it is computed, or where it was before it was moved,
    and stored in one type: its other readers widen it. So is what a product with
    several readers sums, if other products follow from it. All else computes in f32
    as before. Weights are converted in `prepare`; arguments and results of a
    function keep their types, what is written in another type than f32 too.

    ```mlir
    %r = graph.relu %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %y = graph.matmul %r, %w
        : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %z = graph.add %y, %r : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    // becomes
    %r = graph.relu %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %s = graph.cast %r : (tensor<4x8xf32>) -> tensor<4x8xbf16>
    %v = graph.cast %w : (tensor<8x8xf32>) -> tensor<8x8xbf16>
    %y = graph.matmul %s, %v
        : (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xf32>
    %t = graph.cast %s : (tensor<4x8xbf16>) -> tensor<4x8xf32>
    %z = graph.add %y, %t : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    ```

    tf32 is no type to store: with it all stay as they are, but libraries may round
    what products read.

    Where the target has libraries of products, sums are stored narrow behind what a
    library adds, whose operands have one type, with any number of readers, and
    gradients of filters in the type that they read. Where it has narrow attention,
    attention reads narrow matrices.
  }];
  let options = [Option<"type", "type", "std::string", "\"bf16\"",
                        "bf16, f16 or tf32">,
                 ListOption<"keep", "keep", "std::string",
    "globs: products of nodes or parameters that match, and their gradients, "
    "read f32">];
}

def KeepRoundedPass : TccGraphPass<"keep-rounded"> {
  let summary = "keep narrow copies of parameters as variables";
  let description = [{
    A parameter that a function rounds gets a variable of the kind `rounded`. What
    writes the parameter writes the copy, which is an output more of the kernel that
    is there; what rounds the parameter reads it. A function `round_parameters` makes
    all copies, for parameters that are written from outside. Runs when layouts are
    chosen and `prepare` is split off, which would store the first copies. What is
    put together of several parameters stays as it is.

    ```mlir
    func.func @train_step(%w: tensor<8xf32> {graph.variable = "w"})
        -> (tensor<8xf32> {graph.variable = "w"}) {
      %n = graph.cast %w : (tensor<8xf32>) -> tensor<8xbf16>
      // ... makes %next of %n and %w
      return %next : tensor<8xf32>
    }
    // becomes
    func.func @train_step(%w: tensor<8xf32> {graph.variable = "w"},
                          %n: tensor<8xbf16> {graph.variable = "rounded/w"})
        -> (tensor<8xf32> {graph.variable = "w"},
            tensor<8xbf16> {graph.variable = "rounded/w"}) {
      // ... makes %next of %n and %w
      %r = graph.cast %next : (tensor<8xf32>) -> tensor<8xbf16>
      return %next, %r : tensor<8xf32>, tensor<8xbf16>
    }
    ```
  }];
}

def WidenFloatsPass : TccGraphPass<"widen-floats"> {
  let summary = "compute in f64 what is written in f32";
  let description = [{
    Arguments, weights and results keep f32. What a model does in other types,
    stays.

    ```mlir
    func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
      %y = graph.exp %x : (tensor<4xf32>) -> tensor<4xf32>
    // becomes
      %w = graph.cast %x : (tensor<4xf32>) -> tensor<4xf64>
      %e = graph.exp %w : (tensor<4xf64>) -> tensor<4xf64>
      %y = graph.cast %e : (tensor<4xf64>) -> tensor<4xf32>
    ```
  }];
}

def MergeAttentionPass : TccGraphPass<"merge-attention"> {
  let summary = "one kernel where several read the same scores";
  let description = [{
    The three gradients of an attention on tensor cores become one op, if they
    have the same extents and registers have room: what all are rounded,
    transposed and concatenated to is made of its result, so that its kernel
    stores them there. The normalizer becomes a result of the attention. Attention
    with a causal mask is marked so (CausalMask.h).

    ```mlir
    %q = graph.attention_gradient <query> ... -> tensor<2x8x4xf32>
    %k = graph.attention_gradient <key> ...
    %v = graph.attention_gradient <value> ...
    %j = graph.concat %q, %k, %v {axis = 0}
    // becomes
    %a = graph.attention_gradient <all> ... -> tensor<3x2x8x4xf32>
    %r = graph.reshape %a : ... -> tensor<6x8x4xf32>
    %q = graph.slice %r ... -> tensor<2x8x4xf32> // and so on
    ```
  }];
}

def MergeProductsPass : TccGraphPass<"merge-products"> {
  let summary = "one product where several read one tensor";
  let description = [{
    Products of a tensor with parameters that differ in their free extent alone
    become one with all of them, concatenated in `prepare`, and so do the
    pointwise ops that follow all of them alike. Readers take slices. Where
    these ops differ they can no longer follow in the product's kernel: products
    stay apart if kernels of their own would be more than are saved, and if a
    parameter is read by another op, which would need it stored twice.

    ```mlir
    %y = graph.matmul %x, %v
        : (tensor<2x8xf32>, tensor<8x4xf32>) -> tensor<2x4xf32>
    %z = graph.matmul %x, %w
        : (tensor<2x8xf32>, tensor<8x6xf32>) -> tensor<2x6xf32>
    // becomes
    %c = graph.concat %v, %w {axis = 1} ... -> tensor<8x10xf32>
    %m = graph.matmul %x, %c
        : (tensor<2x8xf32>, tensor<8x10xf32>) -> tensor<2x10xf32>
    %y = graph.slice %m ... -> tensor<2x4xf32>
    %z = graph.slice %m ... -> tensor<2x6xf32>
    ```
  }];
}

def PackWeightsPass : TccGraphPass<"pack-weights"> {
  let summary = "bring weights into the panels that kernels read";
  let description = [{
    The rhs of a matmul becomes [batch, ceil(n/64), k, 64], the filter of a
    convolution with the channels last [groups, ceil(filters/groups/64), window *
    channels/groups, 64], that of a depthwise one [window, filters],
    zero-padded, by pad, reshape and transpose of the weight: part of `prepare`.
    A weight that several ops read is packed once; what gathers from it (a tied
    embedding) then reads the panels. Panels of a parameter that is trained are
    made in each run, if enough rows read them, and so are those of a filter that
    is computed.

    ```mlir
    %y = graph.matmul %x, %w
        : (tensor<2x8xf32>, tensor<8x128xf32>) -> tensor<2x128xf32>
    // becomes
    %r = graph.reshape %w : (tensor<8x128xf32>) -> tensor<8x2x64xf32>
    %p = graph.transpose %r [1, 0, 2]
        : (tensor<8x2x64xf32>) -> tensor<2x8x64xf32>
    %y = graph.matmul %x, %p {packed_rhs}
        : (tensor<2x8xf32>, tensor<2x8x64xf32>) -> tensor<2x128xf32>
    ```
  }];
}

def SplitPreparePass : TccGraphPass<"split-prepare"> {
  let summary = "move what depends on no input into @prepare";
  let description = [{
    @prepare takes the tensors of the model that are changed before use and gives
    named tensors `prepare.N`, which the other functions read as weights. A weight
    that is used as it is stays one under its own name; broadcasts and reshapes
    stay where they are, and what depends on no weight either if it is cheaper to
    compute than to load. Without such ops there is no @prepare. @init, which is
    run once, stays as it is.

    ```mlir
    func.func @main(...) {
      %w = graph.weight "w" : tensor<4xf32>
      %e = graph.exp %w : (tensor<4xf32>) -> tensor<4xf32>
      ...
    // becomes
    func.func @main(...) {
      %e = graph.weight "prepare.0" : tensor<4xf32>
      ...
    func.func @prepare(%w: tensor<4xf32> {graph.name = "w"})
        -> (tensor<4xf32> {graph.name = "prepare.0"}) {
      %e = graph.exp %w : (tensor<4xf32>) -> tensor<4xf32>
      return %e : tensor<4xf32>
    }
    ```
  }];
  let dependentDialects = ["::tcc::graph::GraphDialect",
    "::mlir::func::FuncDialect", "::mlir::arith::ArithDialect",
    "::mlir::math::MathDialect", "::mlir::scf::SCFDialect"];
}

def DifferentiatePass : TccGraphPass<"differentiate"> {
  let summary = "add gradients to the results of @main";
  let description = [{
    Reverse mode: the gradients of the sum of a result's elements with respect to
    arguments become results `d(RESULT)/d(ARGUMENT)`. Ops between have
    DifferentiableOpInterface or a decomposition into such ops; all others are
    refused at once.
  }];
  let options = [
    Option<"of", "of", "std::string", "", "the name of a result">,
    ListOption<"wrt", "wrt", "std::string", "names of arguments">];
}

def DecomposePass : TccGraphPass<"decompose"> {
  let summary = "replace composites that have no kernel by simpler ops";
  let description = [{
    Composites that a kernel of the target computes as a whole (softmax, attention)
    stay.

    ```mlir
    %y = graph.batch_norm %x, %scale, %shift, %mean, %variance ...
    // becomes mul and add
    ```
  }];
  let options = [Option<"awaitsPrecision", "awaits-precision", "bool", "false",
    "keep what may have a kernel once its operands are narrow">];
}

def FuseOpsPass : TccGraphPass<"fuse-ops"> {
  let summary = "partition each block into kernels";
  let description = [{
    Groups the ops of each block, those of `if` and `loop` included, into
    `graph.fused` regions, by what saves most time in the cost model. Composites
    without a kernel of their own must be decomposed before. Afterwards a block
    holds kernels, reshapes (views), weights, constants and control flow.

    ```mlir
    %a = graph.exp %x : (tensor<4xf32>) -> tensor<4xf32>
    %b = graph.add %a, %y : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    // becomes
    %b = graph.fused <pointwise> (%x, %y)
        : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%p: tensor<4xf32>, %q: tensor<4xf32>):
      %a = graph.exp %p : (tensor<4xf32>) -> tensor<4xf32>
      %s = graph.add %a, %q : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      graph.yield %s : tensor<4xf32>
    }
    ```
  }];
  let dependentDialects = ["::tcc::graph::GraphDialect",
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::mlir::scf::SCFDialect"];
}

def VerifyFusionPass : TccGraphPass<"verify-fusion"> {
  let summary = "check what code generation assumes of kernels";
  let description = [{
    Every op that computes stands in a `graph.fused` region; each region has one
    loop space and is of the kind it says; ops with loops of their own are read
    only where those loops are (compiler/passes/graph/fusion/Region.h).
  }];
  let dependentDialects = ["::tcc::graph::GraphDialect",
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::mlir::scf::SCFDialect"];
}

#endif // TCC_GRAPH_PASSES
