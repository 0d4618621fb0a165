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

/// An enum of runtime/package/Names.fbs.
class Exec_FormatEnum<string enum, string desc>
    : AttrParameter<"::tcc::format::" # enum, desc> {
  let parser = "parse" # enum # "($_parser)";
  let printer = "$_printer << ::tcc::format::nameOf($_self)";
}

def Exec_OperandAttr : AttrDef<Exec_Dialect, "Operand"> {
  let mnemonic = "operand";
  let summary = "a strided tensor in a buffer of a launch";
  let description = [{
    Element (i, j, ...) lies at offset + i * strides[0] + j * strides[1] + ..., in
    elements; `place` is the size map (offset, extents..., strides...). `buffer` is a
    position among the inputs and outputs of the launch.
  }];
  let parameters = (ins "uint32_t":$buffer, "::mlir::Type":$elementType,
                        "::mlir::AffineMap":$place);
  let assemblyFormat = "`<` $buffer `:` $elementType `,` $place `>`";
  let extraClassDeclaration = [{
    ::llvm::ArrayRef<::mlir::AffineExpr> getExtents() {
      auto sizes = getPlace().getResults();
      return sizes.slice(1, sizes.size() / 2);
    }
  }];
  let genVerifyDecl = 1;
}

def Exec_StepAttr : AttrDef<Exec_Dialect, "Step"> {
  let mnemonic = "step";
  let summary = "what a library does with sums before it rounds them";
  let description = [{
    StepKind of runtime/package/Names.fbs says what a step of the kind computes, and
    whether it has an operand.

    Example: `#exec.step<scale by 5.0e-01 : f64>` or
    `#exec.step<bias of <2 : f32, () -> (0, 1, 4, 8, 0, 0, 1)>>`
  }];
  let parameters = (ins Exec_FormatEnum<"StepKind", "what is done">:$kind,
                        OptionalParameter<"::mlir::FloatAttr">:$factor,
                        OptionalParameter<"OperandAttr">:$operand);
  let assemblyFormat = "`<` $kind (`by` $factor^)? (`of` $operand^)? `>`";
  let genVerifyDecl = 1;
}

def Exec_WindowAttr : AttrDef<Exec_Dialect, "Window"> {
  let mnemonic = "window";
  let summary = "how filters are laid on an image: one entry a spatial axis";
  let parameters = (ins "::mlir::DenseI64ArrayAttr":$padLow,
                        "::mlir::DenseI64ArrayAttr":$padHigh,
                        "::mlir::DenseI64ArrayAttr":$strides,
                        "::mlir::DenseI64ArrayAttr":$dilations);
  let assemblyFormat = "`<` struct(params) `>`";
}

def Exec_FinishedCodeAttr : AttrDef<Exec_Dialect, "FinishedCode"> {
  let mnemonic = "finished_code";
  let summary = "code of a kernel that goes into the package as it is";
  let description = [{
    `entry` is the kernel's name in each of `codes`, of `#graph.custom_code`. It
    takes the addresses of the launch's buffers, then `sizes`; a block gets
    `shared_bytes` of memory beside what the code declares.
  }];
  let parameters = (ins "::mlir::StringAttr":$entry, "::mlir::AffineMapAttr":$sizes,
                        DefaultValuedParameter<"uint32_t", "0">:$shared_bytes,
                        "::mlir::ArrayAttr":$codes);
  let assemblyFormat = "`<` struct(params) `>`";
}

def Exec_LibraryWorkAttr : AttrDef<Exec_Dialect, "LibraryWork"> {
  let mnemonic = "library_work";
  let summary = "what a library may do in place of a kernel, in one call";
  let description = [{
    The LibraryWork of runtime/package/Program.fbs: sums of products of `lhs` and
    `rhs`, and the `steps` that are done with them before they are rounded to
    `result`. With `tf32` the operands, f32, may be rounded to it. All but a product
    have a `window`.
  }];
  let parameters = (ins Exec_FormatEnum<"WorkKind", "what is summed">:$kind,
                        "OperandAttr":$lhs, "OperandAttr":$rhs,
                        "OperandAttr":$result,
                        OptionalParameter<"::mlir::ArrayAttr">:$steps,
                        DefaultValuedParameter<"bool", "false">:$tf32,
                        OptionalParameter<"WindowAttr">:$window);
  let assemblyFormat = [{
    `<` $kind `,` struct($lhs, $rhs, $result, $steps, $tf32, $window) `>`
  }];
  let genVerifyDecl = 1;
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
