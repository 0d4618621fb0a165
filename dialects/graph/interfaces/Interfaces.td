#ifndef TCC_GRAPH_INTERFACES
#define TCC_GRAPH_INTERFACES

include "mlir/IR/OpBase.td"

def PointwiseOpInterface : OpInterface<"PointwiseOpInterface"> {
  let cppNamespace = "::tcc::graph";
  let description = [{
    Each result element depends on the operand elements at the same index. All
    operands and results have one shape. This one body serves code generation
    on every target and the reference evaluator.
  }];
  let methods = [InterfaceMethod<
    [{Emits one result element from one element of each operand with arith and
      math ops. Integers are signless: signedness is the tensor type's. Elements
      narrower than f32 arrive, and leave, as f32.}],
    "::mlir::Value", "emitScalar",
    (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc,
         "::mlir::ValueRange":$elements)>];
}

def ElementOpInterface : OpInterface<"ElementOpInterface"> {
  let cppNamespace = "::tcc::graph";
  let description = [{
    A result element is an element of an operand at other indices, or a value
    made from the indices alone: movement, gathers, creation. Such an op can be
    computed wherever its result is read, so it needs no loop of its own.
  }];
  let methods = [InterfaceMethod<
    "Emits the element of the result at `indices` (index values, one a dim).",
    "::mlir::Value", "emitElement",
    (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc,
         "::mlir::ValueRange":$indices, "::tcc::graph::ElementSource &":$source)>];
}

def IterationOpInterface : OpInterface<"IterationOpInterface"> {
  let cppNamespace = "::tcc::graph";
  let description = [{
    The loops of an op and how operands and results are indexed by them, as in
    linalg: fusion, in-place safety, tiling, layout and sharding derive from it.
  }];
  let methods = [
    InterfaceMethod<"The kind of each loop, outermost first.",
      "::llvm::SmallVector<::mlir::utils::IteratorType>", "getLoopKinds">,
    InterfaceMethod<
      [{The map from loops to indices of operand `operand`; null where it is
        not affine or depends on data.}],
      "::mlir::AffineMap", "getOperandMap", (ins "unsigned":$operand)>,
    InterfaceMethod<"The map from loops to indices of result `result`.",
      "::mlir::AffineMap", "getResultMap", (ins "unsigned":$result)>,
    InterfaceMethod<
      [{The extent of each loop. An op says it itself where operands and results
        do not show all.}],
      "::tcc::graph::Extents", "getLoopExtents", (ins), "",
      [{ return ::tcc::graph::deriveLoopExtents($_op); }]>];
}

def ProductOpInterface : OpInterface<"ProductOpInterface"> {
  let cppNamespace = "::tcc::graph";
  let description = [{
    A batched product of matrices. GPU kernels of products take the op by this and
    by its operands alone.
  }];
  let methods = [
    InterfaceMethod<"The sides, their loops, and where their elements lie.",
      "::tcc::graph::ProductView", "getProduct">];
}

def ReductionOpInterface : OpInterface<"ReductionOpInterface"> {
  let cppNamespace = "::tcc::graph";
  let description = [{
    Combines the elements of operand 0 along axes with an associative operation.
    The result drops the axes. The order of combination is the target's
    canonical tree, the same for a given op and shape.
  }];
  let methods = [
    InterfaceMethod<"The reduced axes, increasing.",
      "::llvm::SmallVector<int64_t>", "getReducedAxes">,
    InterfaceMethod<"The neutral element, of the accumulator type.",
      "::mlir::Value", "emitInit",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc)>,
    InterfaceMethod<"Combines two accumulators; scalars or vectors.",
      "::mlir::Value", "emitCombine",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc,
           "::mlir::Value":$lhs, "::mlir::Value":$rhs)>,
    InterfaceMethod<"The type in which elements are combined.",
      "::mlir::Type", "getAccumulatorType">];
}

def DecomposableOpInterface : OpInterface<"DecomposableOpInterface"> {
  let cppNamespace = "::tcc::graph";
  let description = [{
    A composite: kept whole for targets with a kernel of that shape, else
    replaced by simpler ops of this dialect.
  }];
  let methods = [
    InterfaceMethod<"Emits the decomposition; returns one value a result.",
      "::mlir::FailureOr<::llvm::SmallVector<::mlir::Value>>", "decompose",
      (ins "::mlir::OpBuilder &":$builder)>,
    InterfaceMethod<
      "True if a kernel for the whole op would not pay for such operands.",
      "bool", "isBetterDecomposed", (ins), "", [{ return false; }]>,
    InterfaceMethod<
      "True if that depends on its operands' types, which may become narrower.",
      "bool", "awaitsPrecision", (ins), "", [{ return false; }]>,
    InterfaceMethod<
      [{It will not be decomposed: drops what it carries for that.}],
      "void", "keepWhole", (ins), "", [{ return; }]>];
}

def ExternalKernelOpInterface : OpInterface<"ExternalKernelOpInterface"> {
  let cppNamespace = "::tcc::graph";
  let description = [{
    An op whose kernels come as code. They read and write whole buffers: nothing is
    fused with it.
  }];
  let methods = [
    InterfaceMethod<"The kernel for a target, by its name; null if there is none.",
      "::tcc::graph::CustomKernelAttr", "findKernel",
      (ins "::llvm::StringRef":$target)>,
    InterfaceMethod<"The operations that it does.",
      "::mlir::AffineExpr", "countFlops">,
    InterfaceMethod<"Whether it can be decomposed where it has no kernel.",
      "bool", "hasDecomposition">];
}

def AttentionOpInterface : OpInterface<"AttentionOpInterface"> {
  let cppNamespace = "::tcc::graph";
  let description = [{
    An op whose kernel goes over the scores query key^T * scale + mask block by
    block and multiplies with what it makes of them.
  }];
  let methods = [
    InterfaceMethod<"[batch..., q, d]", "::mlir::Value", "getQuery">,
    InterfaceMethod<"[batch..., k, d]", "::mlir::Value", "getKey">,
    InterfaceMethod<"Null if there is none.", "::mlir::Value", "getMask">,
    InterfaceMethod<"The factor of scores.", "::llvm::APFloat", "getScale">,
    InterfaceMethod<
      "The operands that are multiplied as matrices, those of scores first.",
      "::llvm::SmallVector<::mlir::OpOperand *>", "getMatrices">];
}

def DifferentiableOpInterface : OpInterface<"DifferentiableOpInterface"> {
  let cppNamespace = "::tcc::graph";
  let description = [{
    How gradients pass from the results of an op to its operands, in ops of this
    dialect (interfaces/Gradients.h). Where a function has no derivative, PyTorch's
    choice is taken: 0 at the corner of relu, for instance. An op that is
    decomposable and has no rule is decomposed; any other cannot be differentiated.
  }];
  let methods = [InterfaceMethod<
    [{Adds to the gradients of the operands that are wanted what follows from those
      of the results. Emits an error where the op has no derivative.}],
    "::llvm::LogicalResult", "emitGradients",
    (ins "::tcc::graph::Gradients &":$gradients)>];
}

def ParameterSlotOpInterface : OpInterface<"ParameterSlotOpInterface"> {
  let cppNamespace = "::tcc::graph";
  let description = [{
    An op that reads, where a model has its parameters, one of them: by its place
    a tensor is known for what it is, if the model does not say.
  }];
  let methods = [InterfaceMethod<
    "What a parameter is to the op that has it for operand `operand`.",
    "::tcc::graph::ParameterSlot", "getParameterSlot", (ins "unsigned":$operand)>];
}

def KernelOpInterface : OpInterface<"KernelOpInterface"> {
  let cppNamespace = "::tcc::graph";
  let description = [{
    An op that decides the loop structure of the kernel it is fused into. Ops
    without this interface are pointwise or element ops and go anywhere.
  }];
  let methods = [
    InterfaceMethod<"", "::tcc::graph::KernelKind", "getKernelKind">,
    InterfaceMethod<
      "True if a kernel of irregular kind reads each element of the operand "
      "once: what is cheap may be computed there.",
      "bool", "readsOnce", (ins "unsigned":$operand), "", [{ return false; }]>];
}

def PermutableOpInterface : OpInterface<"PermutableOpInterface"> {
  let cppNamespace = "::tcc::graph";
  let description = [{
    An op that can do the same to operands with their axes in another order.
  }];
  let methods = [InterfaceMethod<
    [{The op on `operands`: axis i of those that have as many axes as
      `permutation` is axis permutation[i] of its own operand; others are its
      own.}],
    "::tcc::graph::PermutedResult", "permute",
    (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$operands,
         "::llvm::ArrayRef<int64_t>":$permutation)>];
}

def PrecisionOpInterface : OpInterface<"PrecisionOpInterface"> {
  let cppNamespace = "::tcc::graph";
  let description = [{
    What becomes of an op where a model's floats may be stored in a narrower type
    (compiler/passes/graph/MixPrecision.cpp). Pointwise bodies, reductions and
    norms compute in f32 whatever their operands are stored in: an op without
    this interface keeps its types, and reads and is read through casts, which
    are fused into kernels.
  }];
  let methods = [InterfaceMethod<
    [{`narrow`: products gain from narrow operands; they are summed in the
      result's element type, which stays. `narrow_attention`: so do the matrices of
      an AttentionOpInterface, where a target multiplies narrow ones;
      `narrow_tensor_attention`: where it does on tensor cores. `follow`: elements
      of the result are elements of operands, unchanged.}],
    "::tcc::graph::Precision", "getPrecision", (ins), "",
    [{ return ::tcc::graph::Precision::follow; }]>,
    InterfaceMethod<
    [{Lets a library round to tf32 what products of f32 read; false if no library
      has the op's.}],
    "bool", "setTf32Allowed", (ins), "", [{ return false; }]>,
    InterfaceMethod<"Whether a library may.", "bool", "isTf32Allowed", (ins), "",
    [{ return false; }]>,
    InterfaceMethod<
    [{Whether what the op sums is stored in the element type of its operands wherever
      it goes: libraries have no other kernels.}],
    "bool", "isStoredAsRead", (ins), "", [{ return false; }]>,
    InterfaceMethod<
    "Whether the result is stored in its own type, whatever reads it.",
    "bool", "isStoredWide", (ins), "", [{ return false; }]>];
}

def ScatterOpInterface : OpInterface<"ScatterOpInterface"> {
  let cppNamespace = "::tcc::graph";
  let description = [{
    The result is operand 0 with the elements of operand 2 combined into it, in
    row-major order, at places that operand 1 holds.
  }];
  let methods = [
    InterfaceMethod<"How an update changes an element.",
      "::tcc::graph::ScatterKind", "getKind">,
    InterfaceMethod<
      [{The axes of the result, adjacent ones, that operand 1 gives the indices
        of. In their place operand 2 has any axes; its others are the result's,
        or begin as those do.}],
      "::llvm::SmallVector<int64_t>", "getScatteredAxes">,
    InterfaceMethod<
      "Emits the indices of the element that the update at `at` changes.",
      "::llvm::SmallVector<::mlir::Value>", "emitDestination",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc,
           "::mlir::ValueRange":$at, "::tcc::graph::ElementSource &":$source)>];
}

def ShapeConditionOpInterface : OpInterface<"ShapeConditionOpInterface"> {
  let cppNamespace = "::tcc::graph";
  let description = [{
    An op that has no meaning for some values of the symbols. That no extent is
    negative goes without saying.
  }];
  let methods = [InterfaceMethod<
    "Size expressions that must not be negative.",
    "::tcc::graph::Extents", "getNonNegativeSizes">];
}

def SizeDefinitionOpInterface : OpInterface<"SizeDefinitionOpInterface"> {
  let cppNamespace = "::tcc::graph";
  let description = [{
    An op that gives computed symbols their values. What uses them follows it, in
    its block or in blocks inside.
  }];
  let methods = [
    InterfaceMethod<"The positions of the symbols.",
      "::llvm::SmallVector<unsigned>", "getDefinedSymbols">,
    InterfaceMethod<"Those that are set in the op's regions already.",
      "::llvm::SmallVector<unsigned>", "getBodySymbols", (ins), "",
      /*defaultImplementation=*/"return {};">];
}

#endif // TCC_GRAPH_INTERFACES
