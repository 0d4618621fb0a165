#ifndef TCC_GRAPH_DIALECT
#define TCC_GRAPH_DIALECT

include "mlir/IR/OpBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "dialects/graph/interfaces/Interfaces.td"

def Graph_Dialect : Dialect {
  let name = "graph";
  let cppNamespace = "::tcc::graph";
  let summary = "tensor computations, one op per mathematical operation";
  let description = [{
    Values are ranked tensors. A dimension is a constant or an affine expression
    of the module's symbols: the tensor's encoding is then an affine map
    `()[s0, ...] -> (extents)` whose symbol `i` is entry `i` of the module
    attribute `graph.symbols` (see Shape.h). Where an op gives a symbol its value,
    what uses the symbol follows it. Element types are f64, f32, f16,
    bf16, si/ui 8..64 (`i8` is signed, `ui8` unsigned) and `i1` for booleans.

    Function arguments and results carry `graph.name`, the model's name.

    A module that trains lists its variables in `graph.variables`: tensors that
    last as long as a session and that its functions share. An argument with
    `graph.variable = "NAME"` is the value of a variable, a result with it the
    new one; these follow the user's arguments and results. A function may read
    a variable without writing it, or write without reading.
  }];
  let hasConstantMaterializer = 1;
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let extraClassDeclaration = [{
    static constexpr llvm::StringLiteral kSymbolsAttr = "graph.symbols";
    static constexpr llvm::StringLiteral kNameAttr = "graph.name";
    /// The target that a module is compiled for, by name: compiler/target.
    static constexpr llvm::StringLiteral kTargetAttr = "graph.target";
    static constexpr llvm::StringLiteral kVariablesAttr = "graph.variables";
    static constexpr llvm::StringLiteral kVariableAttr = "graph.variable";
    /// What of the recipe is compiled in: KEY=VALUE, one a line.
    static constexpr llvm::StringLiteral kRecipeAttr = "graph.recipe";
    /// Batches of an update that are added up in one tree: Program.exact.
    static constexpr llvm::StringLiteral kExactAttr = "graph.exact";
    /// The metrics of `eval`, and when training runs evaluate: a dictionary of
    /// what Evaluation of the package's schema has.
    static constexpr llvm::StringLiteral kMetricsAttr = "graph.metrics";
    static constexpr llvm::StringLiteral kEvaluationAttr = "graph.evaluation";
    /// Tensors of the model's file that have the values of variables under other
    /// names, or transposed: dictionaries of what StoredTensor of the package's
    /// schema has, the variable by its name.
    static constexpr llvm::StringLiteral kStoredTensorsAttr =
        "graph.stored_tensors";
    /// What a run does where the loss jumps: a dictionary of what Spikes of the
    /// package's schema has.
    static constexpr llvm::StringLiteral kSpikesAttr = "graph.spikes";
    /// The keys of the recipe's [data], as TOML.
    static constexpr llvm::StringLiteral kDataAttr = "graph.data";
    /// How many ranks a module is for that divides variables among them: i64.
    static constexpr llvm::StringLiteral kRanksAttr = "graph.ranks";

  private:
    // Each family registers its own ops, in ops/<Family>.cpp.
    void addStructureOps();
    void addPointwiseOps();
    void addReductionOps();
    void addContractionOps();
    void addConvolutionOps();
    void addNormalizationOps();
    void addAttentionOps();
    void addMovementOps();
    void addIndexingOps();
    void addRandomOps();
    void addControlOps();
    void addCollectiveOps();
    void addCustomOps();
  }];
}

/// Of a PrecisionOpInterface with a UnitAttr `tf32`.
class Graph_Tf32 {
  code methods = [{
    bool setTf32Allowed() {
      setTf32(true);
      return true;
    }
    bool isTf32Allowed() { return getTf32(); }
  }];
}

class Graph_Op<string mnemonic, list<Trait> traits = []>
    : Op<Graph_Dialect, mnemonic, traits>;

def Graph_FloatTensor : RankedTensorOf<[AnyFloat]>;

/// An op whose result types follow from operands and attributes.
class Graph_InferredOp<string mnemonic, list<Trait> traits = []>
    : Graph_Op<mnemonic, !listconcat(traits, [Pure, InferTypeOpAdaptor])> {
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat =
    "operands attr-dict `:` functional-type(operands, results)";
}

class Graph_Enum<string name, string summary, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::tcc::graph";
  let genSpecializedAttr = 0;
}
class Graph_EnumAttr<I32EnumAttr enum, string mnemonic>
    : EnumAttr<Graph_Dialect, enum, mnemonic> {
  let assemblyFormat = "`<` $value `>`";
}

def Graph_ReduceKind : Graph_Enum<"ReduceKind", "how elements are combined", [
  I32EnumAttrCase<"sum", 0>, I32EnumAttrCase<"prod", 1>,
  I32EnumAttrCase<"max", 2>, I32EnumAttrCase<"min", 3>]>;
def Graph_CompareKind : Graph_Enum<"CompareKind", "comparison", [
  I32EnumAttrCase<"eq", 0>, I32EnumAttrCase<"ne", 1>,
  I32EnumAttrCase<"lt", 2>, I32EnumAttrCase<"le", 3>,
  I32EnumAttrCase<"gt", 4>, I32EnumAttrCase<"ge", 5>]>;
def Graph_PadMode : Graph_Enum<"PadMode", "what padding elements hold", [
  I32EnumAttrCase<"constant", 0>, I32EnumAttrCase<"reflect", 1>,
  I32EnumAttrCase<"edge", 2>, I32EnumAttrCase<"wrap", 3>]>;
def Graph_PoolKind : Graph_Enum<"PoolKind", "window reduction", [
  I32EnumAttrCase<"max", 0>, I32EnumAttrCase<"average", 1>,
  I32EnumAttrCase<"sum", 2>]>;
def Graph_ScatterKind : Graph_Enum<"ScatterKind", "how updates are combined", [
  I32EnumAttrCase<"none", 0>, I32EnumAttrCase<"add", 1>,
  I32EnumAttrCase<"mul", 2>, I32EnumAttrCase<"max", 3>,
  I32EnumAttrCase<"min", 4>]>;
def Graph_RandomKind : Graph_Enum<"RandomKind", "distribution", [
  I32EnumAttrCase<"uniform", 0>, I32EnumAttrCase<"normal", 1>]>;
def Graph_KernelKind : Graph_Enum<"KernelKind", "loop structure of a kernel", [
  I32EnumAttrCase<"pointwise", 0>,   // one loop nest over the results
  I32EnumAttrCase<"row", 1>,         // reductions inside an outer loop nest
  I32EnumAttrCase<"contraction", 2>, // matrix multiplication, with epilogue
  I32EnumAttrCase<"window", 3>,      // pooling, depthwise convolution
  I32EnumAttrCase<"scan", 4>,        // running combination along an axis
  I32EnumAttrCase<"irregular", 5>,   // sort, scatter, compaction
  I32EnumAttrCase<"attention", 6>,   // two products and a softmax, by rows
  I32EnumAttrCase<"window_sums", 7>]>; // products summed for each place of a window

def Graph_Precision : Graph_Enum<"Precision", "types an op computes in", [
  I32EnumAttrCase<"keep", 0>,    // those that it was written in
  I32EnumAttrCase<"narrow", 1>,  // operands narrow, result wide: the sums
  I32EnumAttrCase<"follow", 2>,  // narrow where the operands are
  I32EnumAttrCase<"narrow_attention", 3>, // where a target has it, ...
  I32EnumAttrCase<"narrow_tensor_attention", 4>]>; // ... on tensor cores

def Graph_ParameterSlot : Graph_Enum<"ParameterSlot",
    "what a parameter is to an op", [
  I32EnumAttrCase<"none", 0>,
  I32EnumAttrCase<"matrix", 1>,     // of a product or convolution
  I32EnumAttrCase<"table", 2>,      // of which slices are read by index
  I32EnumAttrCase<"factor", 3>,     // of whatever is multiplied
  I32EnumAttrCase<"summand", 4>,    // a bias
  I32EnumAttrCase<"norm_scale", 5>,
  I32EnumAttrCase<"norm_shift", 6>,
  I32EnumAttrCase<"statistic", 7>]>; // of a batch norm: a buffer

def Graph_AttentionOperand : Graph_Enum<"AttentionOperand",
    "operands of attention: `all` are query, key and value", [
  I32EnumAttrCase<"query", 0>, I32EnumAttrCase<"key", 1>,
  I32EnumAttrCase<"value", 2>, I32EnumAttrCase<"all", 3>,
  I32EnumAttrCase<"mask", 4>]>;

def Graph_AttentionOperandAttr :
    Graph_EnumAttr<Graph_AttentionOperand, "attention_operand">;
def Graph_ReduceKindAttr : Graph_EnumAttr<Graph_ReduceKind, "reduce_kind">;
def Graph_CompareKindAttr : Graph_EnumAttr<Graph_CompareKind, "compare_kind">;
def Graph_PadModeAttr : Graph_EnumAttr<Graph_PadMode, "pad_mode">;
def Graph_PoolKindAttr : Graph_EnumAttr<Graph_PoolKind, "pool_kind">;
def Graph_ScatterKindAttr : Graph_EnumAttr<Graph_ScatterKind, "scatter_kind">;
def Graph_RandomKindAttr : Graph_EnumAttr<Graph_RandomKind, "random_kind">;
def Graph_KernelKindAttr : Graph_EnumAttr<Graph_KernelKind, "kernel_kind">;

def Graph_LimitAttr : AttrDef<Graph_Dialect, "Limit"> {
  let mnemonic = "limit";
  let summary = "the most that a product of symbols is";
  let description = [{
    Example: `<affine_map<()[s0, s1] -> (s0 * s1)> to 24>`
  }];
  let parameters = (ins "::mlir::AffineMapAttr":$product, "int64_t":$max);
  let assemblyFormat = "`<` $product `to` $max `>`";
}

def Graph_SymbolAttr : AttrDef<Graph_Dialect, "Symbol"> {
  let mnemonic = "symbol";
  let summary = "an unknown dimension: its name, range and divisor";
  let description = [{
    The inputs' shapes tell the values of symbols, but for `computed` ones: an op
    of the module gives these their values. They are the last of a module. With
    `limit` a symbol is one of some whose product is bounded.

    Example: `<"boxes.0", 0 to 100 by 1 computed>`
  }];
  let parameters = (ins "::mlir::StringAttr":$name, "int64_t":$min,
                        "int64_t":$max, "int64_t":$divisor,
                        DefaultValuedParameter<"bool", "false">:$isComputed,
                        OptionalParameter<"::tcc::graph::LimitAttr">:$limit);
  let hasCustomAssemblyFormat = 1;
  let builders = [
    AttrBuilder<(ins "::mlir::StringAttr":$name, "int64_t":$min,
                     "int64_t":$max, "int64_t":$divisor), [{
      return $_get($_ctxt, name, min, max, divisor, /*isComputed=*/false,
                   /*limit=*/::tcc::graph::LimitAttr());
    }]>
  ];
}

/// An enum of the package's schema, by the name of the enumerator.
class Graph_FormatEnum<string enum, string desc>
    : AttrParameter<"::tcc::format::" # enum, desc> {
  let parser = "parse" # enum # "($_parser)";
  let printer = "$_printer << ::tcc::format::nameOf($_self)";
}
def Graph_StepFieldParameter
    : AttrParameter<"std::optional<::tcc::format::StepField>", "or none"> {
  let parser = "parseStepField($_parser)";
  let printer = "$_printer << ::tcc::format::nameOf(*$_self)";
  let defaultValue = "std::nullopt";
}

def Graph_CodeForm : Graph_Enum<"CodeForm", "what code of a kernel is", [
  I32EnumAttrCase<"object", 1>, I32EnumAttrCase<"nvvm", 2>,
  I32EnumAttrCase<"ptx", 3>, I32EnumAttrCase<"cubin", 4>]>;

def Graph_CustomCodeAttr : AttrDef<Graph_Dialect, "CustomCode"> {
  let mnemonic = "custom_code";
  let summary = "code of a kernel for some machines of a target";
  let description = [{
    The digest of `bytes` is in their name; `machine` is the least that runs them, a
    name of --cpu or --arch. `form`: an ELF object for x86-64; for GPUs LLVM bitcode
    for nvptx64, PTX or a cubin.
  }];
  let parameters = (ins EnumParameter<Graph_CodeForm>:$form,
                        "::mlir::StringAttr":$machine,
                        "::mlir::DenseResourceElementsAttr":$bytes);
  let assemblyFormat = "`<` struct(params) `>`";
}

def Graph_CustomKernelAttr : AttrDef<Graph_Dialect, "CustomKernel"> {
  let mnemonic = "custom_kernel";
  let summary = "a kernel that a plugin has for a target";
  let description = [{
    A function `symbol` of the buffers of inputs and results and of `sizes`. `tasks`
    are divided among threads, each with `scratch` bytes; of a GPU they are blocks of
    `threads` threads, with `shared_bytes` bytes beside what the code declares.
    `codes` are of the same kernel for several machines.
  }];
  let parameters = (ins "::mlir::StringAttr":$target, "::mlir::StringAttr":$symbol,
                        "::mlir::AffineMapAttr":$sizes,
                        "::mlir::AffineMapAttr":$tasks,
                        "::mlir::AffineMapAttr":$scratch, "uint32_t":$threads,
                        DefaultValuedParameter<"uint32_t", "0">:$shared_bytes,
                        "::mlir::ArrayAttr":$codes);
  let assemblyFormat = "`<` struct(params) `>`";
  let extraClassDeclaration = [{
    /// Whether the code goes into the package as it is: PTX and cubins.
    bool isFinished() const;
  }];
}

def Graph_RangeAttr : AttrDef<Graph_Dialect, "Range"> {
  let mnemonic = "range";
  let summary = "numbers; open ends are no part of it";
  let parameters = (ins "::mlir::FloatAttr":$min, "::mlir::FloatAttr":$max,
                        "bool":$opensAtMin, "bool":$opensAtMax);
  let assemblyFormat = "`<` struct(params) `>`";
}

def Graph_SettingAttr : AttrDef<Graph_Dialect, "Setting"> {
  let mnemonic = "setting";
  let summary = "a value of the recipe that changes at run time";
  let description = [{
    `range` says what numbers each element may be, if it is a number; each of
    `words`, strings, stands for its position. `initial` is what the recipe
    gives.

    Example: `<key = "on_nan", words = ["stop", "skip"],
               initial = dense<0> : tensor<i64>>`
  }];
  let parameters = (ins "::mlir::StringAttr":$key,
                        OptionalParameter<"::tcc::graph::RangeAttr">:$range,
                        OptionalParameter<"::mlir::ArrayAttr">:$words,
                        "::mlir::DenseElementsAttr":$initial);
  let assemblyFormat = "`<` struct(params) `>`";
}

def Graph_MetricAttr : AttrDef<Graph_Dialect, "Metric"> {
  let mnemonic = "metric";
  let summary = "what follows from sums over the batches of an evaluation";
  let description = [{
    `sums` are names of results of `eval`. `rises` if more is better.

    Example: `#graph.metric<name = "accuracy", rule = mean,
               sums = ["correct", "count"], rises = true>`
  }];
  let parameters = (ins "::mlir::StringAttr":$name,
    Graph_FormatEnum<"MetricRule", "how it follows">:$rule,
    "::mlir::ArrayAttr":$sums, "bool":$rises);
  let assemblyFormat = "`<` struct(params) `>`";
}

def Graph_SliceAttr : AttrDef<Graph_Dialect, "Slice"> {
  let mnemonic = "slice";
  let summary = "what a variable holds of a tensor: elements from an offset on";
  let parameters = (ins "::mlir::DenseI64ArrayAttr":$shape,
                        "::mlir::DenseI64ArrayAttr":$offset);
  let assemblyFormat = "`<` $shape `from` $offset `>`";
}

def Graph_PieceAttr : AttrDef<Graph_Dialect, "Piece"> {
  let mnemonic = "piece";
  let summary = "a tensor in a variable that ranks divide";
  let description = [{
    The elements of `type` lie in the variable as a whole from element `begin` on.
    `parameter` is what the tensor belongs to.

    Example: `#graph.piece<"exp_avg/w", tensor<4x3xf32> of "w" at 16>`
  }];
  let parameters = (ins "::mlir::StringAttr":$name,
    "::mlir::RankedTensorType":$type, "::mlir::StringAttr":$parameter,
    "int64_t":$begin);
  let assemblyFormat = "`<` $name `,` $type `of` $parameter `at` $begin `>`";
}

def Graph_VariableAttr : AttrDef<Graph_Dialect, "Variable"> {
  let mnemonic = "variable";
  let summary = "a tensor of a session: its name, kind and type";
  let description = [{
    `of` names the parameter that a slot, gradient or copy belongs to. A
    variable of the step may hold one of its fields. `setting` is for what the
    recipe lets change at run time. Without `slice` the variable is the whole
    tensor. Variables with the same number as `bucket` follow each other, and lie
    in one piece of memory, which one message of ranks moves. `room` is how many
    bytes the variable takes with the zeros behind it, where these are not those
    up to the next multiple of the alignment alone. A variable with `pieces` is
    divided among the ranks of the module (`graph.ranks`), each of which has as
    many elements of it; `pieces` are the tensors in it.

    Example: `#graph.variable<"exp_avg/w", slot, tensor<8xf32> of "w">`,
    `#graph.variable<"fault", step, tensor<i64> field fault>`,
    `#graph.variable<"exp_avg", slot, tensor<16xf32> pieces
       [#graph.piece<"exp_avg/w", tensor<5x5xf32> of "w" at 0>]>`
  }];
  let parameters = (ins "::mlir::StringAttr":$name,
    Graph_FormatEnum<"VariableKind", "what it is for">:$kind,
    "::mlir::RankedTensorType":$type,
    OptionalParameter<"::mlir::StringAttr">:$parameter,
    Graph_StepFieldParameter:$field,
    OptionalParameter<"::tcc::graph::SliceAttr">:$slice,
    OptionalParameter<"::tcc::graph::SettingAttr">:$setting,
    OptionalParameter<"::mlir::IntegerAttr">:$bucket,
    OptionalParameter<"::mlir::IntegerAttr">:$room,
    OptionalParameter<"::mlir::ArrayAttr">:$pieces);
  let assemblyFormat = [{
    `<` $name `,` $kind `,` $type (`of` $parameter^)? (`field` $field^)?
    (`slice` $slice^)? (`setting` $setting^)? (`bucket` $bucket^)?
    (`room` $room^)? (`pieces` $pieces^)? `>`
  }];
}

#endif // TCC_GRAPH_DIALECT
