#ifndef TCC_GRAPH_CONTROL
#define TCC_GRAPH_CONTROL

include "dialects/graph/GraphDialect.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"

/// An op with blocks, which has an effect if it sets sizes.
class Graph_Control<string mnemonic, list<Trait> traits = []>
    : Graph_Op<mnemonic, !listconcat(traits, [RecursivelySpeculatable,
        RecursiveMemoryEffects, DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
        DeclareOpInterfaceMethods<SizeDefinitionOpInterface, ["getBodySymbols"]>,
        DeclareOpInterfaceMethods<DifferentiableOpInterface>])>;

def Graph_IfOp : Graph_Control<"if"> {
  let summary = "one of two computations";
  let description = [{
    `condition` is a boolean with one element. Both regions yield the results'
    types and may use values from outside. Where they yield other extents than a
    result has, that extent is a computed symbol which the op sets.
  }];
  let arguments = (ins AnyRankedTensor:$condition);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let regions = (region SizedRegion<1>:$then_region,
                        SizedRegion<1>:$else_region);
  let assemblyFormat = [{
    $condition attr-dict `:` functional-type(operands, results)
    $then_region `else` $else_region
  }];
  let hasVerifier = 1;
}

def Graph_LoopOp : Graph_Control<"loop", [AttrSizedOperandSegments]> {
  let summary = "repeats a computation on carried values";
  let description = [{
    The body's arguments are the iteration number (i64 scalar) and the carried
    values; it yields a boolean scalar, whether to go on, then the carried values
    for the next iteration, then one slice for each scanned result. It runs at
    most `trips` times (an i64 scalar; absent: no limit), and not at all if
    `condition` (absent: true) is false.

    Results are the final carried values and, for each slice, the slices stacked
    along a new leading axis whose extent is the number of iterations. That is a
    size known before, or `count`: a computed symbol which the op sets. The body
    may use values from outside.

    Carried values may change their extents: results and the body's arguments
    have computed symbols there, which the op sets before the first iteration
    and after each.
  }];
  let arguments = (ins Optional<AnyRankedTensor>:$trips,
                       Optional<AnyRankedTensor>:$condition,
                       Variadic<AnyRankedTensor>:$inits,
                       OptionalAttr<AffineMapAttr>:$count);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    (`trips` $trips^ `:` type($trips))?
    (`while` $condition^ `:` type($condition))?
    (`inits` $inits^ `:` type($inits))? (`count` $count^)?
    (`->` type($results)^)?
    attr-dict-with-keyword $body
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The types of the carried values in the body.
    ::mlir::TypeRange getCarriedTypes();
    /// What their extents are set to before the loop and after an iteration.
    ::llvm::SmallVector<SetSize> getSizesBefore();
    ::llvm::SmallVector<SetSize> getSizesOfIteration();
  }];
}

#endif // TCC_GRAPH_CONTROL
