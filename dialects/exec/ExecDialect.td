#ifndef TCC_EXEC_DIALECT
#define TCC_EXEC_DIALECT

include "mlir/IR/OpBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "dialects/exec/Interfaces.td"

def Exec_Dialect : Dialect {
  let name = "exec";
  let cppNamespace = "::tcc::exec";
  let summary = "the program that the runtime walks";
  let description = [{
    Buffers, launches of kernels, copies, structured control flow, collectives,
    and the ordering of lanes. Each op is one table of runtime/package/Program.fbs,
    so that writing a package is a walk.

    Commands of one lane run in the order of the program, those of two lanes in
    any that `exec.wait` allows (Order.h). A block begins and ends on lane 0: every
    lane that it uses waits for lane 0 in the block, and lane 0 for that lane.
    A command `exec.start_...` goes on until its token is waited for, once and in
    its block.

    Sizes are affine maps `()[s0, ...] -> (values)` whose symbol `i` is size slot
    `i`, an i64 known at run time. The first slots are the module's symbols
    (`graph.symbols`); later ones are set by `exec.set_size`, `exec.read_size`
    and `exec.loop`.

    The variables of a session are the module's (`graph.variables`). Each is one
    place in memory for all entry points, which are run one at a time.
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let extraClassDeclaration = [{
  private:
    // Each family registers its own ops, in ops/<Family>.cpp.
    void addProgramOps();
    void addBufferOps();
    void addCommandOps();
    void addControlOps();
    void addLaneOps();
    void addCollectiveOps();
  }];
}

class Exec_Enum<string name, string summary, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::tcc::exec";
  let genSpecializedAttr = 0;
}
class Exec_EnumAttr<I32EnumAttr enum, string mnemonic>
    : EnumAttr<Exec_Dialect, enum, mnemonic>;

def Exec_MemorySpace : Exec_Enum<"MemorySpace", "where a buffer lies", [
  I32EnumAttrCase<"host", 0>, I32EnumAttrCase<"pinned", 1>,
  I32EnumAttrCase<"device", 2>]>;
def Exec_StorageClass : Exec_Enum<"StorageClass", "who owns a buffer", [
  I32EnumAttrCase<"input", 0>,    // bound by the caller
  I32EnumAttrCase<"output", 1>,   // bound by the caller
  I32EnumAttrCase<"constant", 2>, // a tensor of the const section
  I32EnumAttrCase<"model", 3>,    // a tensor of the model, `prepare` only
  I32EnumAttrCase<"scratch", 4>,  // the arena of the context
  I32EnumAttrCase<"state", 5>,    // kept between runs
  I32EnumAttrCase<"fault", 6>,    // {flag, value} of an index out of range
  I32EnumAttrCase<"variable", 7>]>; // of a session, shared by its entries

def Exec_Activation : Exec_Enum<"Activation", "the function behind a product", [
  I32EnumAttrCase<"none", 0>, I32EnumAttrCase<"relu", 1>,
  I32EnumAttrCase<"gelu_tanh", 2>,
  I32EnumAttrCase<"gelu_tanh_gradient", 3>]>; // times gelu_tanh'(sum)

def Exec_ConvolutionKind : Exec_Enum<"ConvolutionKind",
    "a convolution or a gradient of one", [
  I32EnumAttrCase<"forward", 0>, I32EnumAttrCase<"filter_gradient", 1>]>;

def Exec_StorageClassAttr : Exec_EnumAttr<Exec_StorageClass, "storage">;

def Exec_BufferType : TypeDef<Exec_Dialect, "Buffer"> {
  let mnemonic = "buffer";
  let summary = "bytes in a memory space";
  let parameters = (ins EnumParameter<Exec_MemorySpace>:$space);
  let assemblyFormat = "`<` $space `>`";
}

def Exec_TokenType : TypeDef<Exec_Dialect, "Token"> {
  let mnemonic = "token";
  let summary = "a moment of a lane, waited for once in the block";
}

def Exec_TensorAttr : AttrDef<Exec_Dialect, "Tensor"> {
  let mnemonic = "tensor";
  let summary = "an input or output of an entry point";
  let description = [{
    Its name in the model, its graph type, for an input with a value fixed at
    compile time that value, and for one used as an index the range of indices
    (empty: unknown).
  }];
  let parameters = (ins "::mlir::StringAttr":$name,
                        "::mlir::RankedTensorType":$type,
                        OptionalParameter<"::mlir::ElementsAttr">:$fixed,
                        DefaultValuedParameter<"int64_t", "0">:$indexMin,
                        DefaultValuedParameter<"int64_t", "-1">:$indexMax);
  let assemblyFormat = [{
    `<` $name `,` $type
    (`,` struct($fixed, $indexMin, $indexMax)^)? `>`
  }];
}

def Exec_StateAttr : AttrDef<Exec_Dialect, "State"> {
  let mnemonic = "state";
  let summary = "an output that becomes an input of the next run";
  let parameters = (ins "uint32_t":$input, "uint32_t":$output);
  let assemblyFormat = "`<` $output `to` $input `>`";
}

def Exec_MatrixAttr : AttrDef<Exec_Dialect, "Matrix"> {
  let mnemonic = "matrix";
  let summary = "a matrix in a buffer of a launch, or one for each of a batch";
  let description = [{
    Element (b, i, j) lies at offset + b * batch + i * row + j * column, in
    elements; `place` is the size map (offset, batch, row, column). `buffer` is a
    position among the inputs and outputs of the launch.
  }];
  let parameters = (ins "uint32_t":$buffer, "::mlir::Type":$elementType,
                        "::mlir::AffineMap":$place);
  let assemblyFormat = "`<` $buffer `:` $elementType `,` $place `>`";
}

def Exec_ProductAttr : AttrDef<Exec_Dialect, "Product"> {
  let mnemonic = "product";
  let summary = "what a kernel computes, as a library of matrix products knows it";
  let description = [{
    result[b, i, j] = activation(scale * sum_k lhs[b, i, k] * rhs[b, k, j]
                                 + addend[b, i, j] + bias[j])

    `extents` is the size map (batch, i, j, k). All floats; sums are f32, or f64
    for f64. `addend` and `bias` have the result's element type. With `tf32` the
    operands, f32, may be rounded to it. What gelu_tanh is of is stored in `sum`, of
    the result's type, where it is there. gelu_tanh_gradient, before which nothing is
    added, reads it: it multiplies with gelu_tanh'(sum[b, i, j]). `depth_sums`, where
    they are there, are a vector, sum_k rhs[k, j] or sum_k lhs[i, k], behind products
    without scale, bias and activation.
  }];
  let parameters = (ins "::mlir::AffineMap":$extents, "MatrixAttr":$lhs,
                        "MatrixAttr":$rhs, "MatrixAttr":$result,
                        OptionalParameter<"MatrixAttr">:$addend,
                        OptionalParameter<"MatrixAttr">:$bias,
                        "::mlir::FloatAttr":$scale,
                        EnumParameter<Exec_Activation>:$activation,
                        DefaultValuedParameter<"bool", "false">:$tf32,
                        OptionalParameter<"MatrixAttr">:$sum,
                        OptionalParameter<"MatrixAttr">:$depthSums,
                        DefaultValuedParameter<"bool", "false">:$sumsLhs);
  let assemblyFormat = "`<` struct(params) `>`";
}

def Exec_ImageAttr : AttrDef<Exec_Dialect, "Image"> {
  let mnemonic = "image";
  let summary = "a tensor [N, C, spatial...] in a buffer of a launch";
  let description = [{
    Of the size map (offset, extents..., strides...) in elements. `buffer` is a
    position among the inputs and outputs of the launch.
  }];
  let parameters = (ins "uint32_t":$buffer, "::mlir::Type":$elementType,
                        "::mlir::AffineMap":$place);
  let assemblyFormat = "`<` $buffer `:` $elementType `,` $place `>`";
}

def Exec_ConvolutionAttr : AttrDef<Exec_Dialect, "Convolution"> {
  let mnemonic = "convolution";
  let summary = "what a kernel computes, as a library of convolutions knows it";
  let description = [{
    result[n, k, p] = activation(sum_{c, t} x[n, c, p * strides + t * dilations -
      pad_low] * filter[k, c, t] + addend[n, k, p] + bias[k])

    x and filter are f16 or bf16, or f32 that may be rounded to tf32; sums f32.
    `addend` and `bias` have the result's element type; the extents of `bias` are
    those of the result, too. A `filter_gradient` is, without them,

    result[k, c, t] = sum_{n, p} x[n, c, p * strides + t * dilations - pad_low] *
      filter[n, k, p]
  }];
  let parameters = (ins EnumParameter<Exec_ConvolutionKind>:$kind,
                        "ImageAttr":$x, "ImageAttr":$filter,
                        "ImageAttr":$result,
                        OptionalParameter<"ImageAttr">:$addend,
                        OptionalParameter<"ImageAttr">:$bias,
                        "::mlir::DenseI64ArrayAttr":$padLow,
                        "::mlir::DenseI64ArrayAttr":$padHigh,
                        "::mlir::DenseI64ArrayAttr":$strides,
                        "::mlir::DenseI64ArrayAttr":$dilations,
                        EnumParameter<Exec_Activation>:$activation,
                        DefaultValuedParameter<"bool", "false">:$tf32);
  let assemblyFormat = "`<` struct(params) `>`";
}

class Exec_Op<string mnemonic, list<Trait> traits = []>
    : Op<Exec_Dialect, mnemonic, traits>;

/// Runs on a lane.
class Exec_Command<string mnemonic, list<Trait> traits = []>
    : Exec_Op<mnemonic, !listconcat(traits, [
        DeclareOpInterfaceMethods<CommandOpInterface, ["getReads", "getWrites"]>])>;

/// Goes on beside what follows, until its token is waited for.
class Exec_Start<string mnemonic, list<Trait> traits = []>
    : Exec_Op<mnemonic, !listconcat(traits, [
        DeclareOpInterfaceMethods<TokenOpInterface>])> {
  let results = (outs Exec_TokenType:$token);
}

class Exec_ArrayOf<Attr attr>
    : TypedArrayAttrBase<attr, "array of " # attr.summary>;

#endif // TCC_EXEC_DIALECT
