#ifndef TCC_GRAPH_CONTROL
#define TCC_GRAPH_CONTROL

include "dialects/graph/GraphDialect.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"

def Graph_IfOp : Graph_Op<"if", [Pure,
    DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "one of two computations";
  let description = [{
    `condition` is a boolean with one element. Both regions yield the results'
    types and may use values from outside.
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

def Graph_LoopOp : Graph_Op<"loop", [Pure, AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "repeats a computation on carried values";
  let description = [{
    The body's arguments are the iteration number (i64 scalar) and the carried
    values; it yields a boolean scalar, whether to go on, then the carried values
    for the next iteration, then one slice for each scanned result. It runs at
    most `trips` times (an i64 scalar; absent: no limit), and not at all if
    `condition` (absent: true) is false.

    Results are the final carried values and, for each slice, the slices stacked
    along a new leading axis whose extent is the number of iterations: `scans`
    gives that extent, so that the number of iterations must be known or bounded.
    The body may use values from outside.
  }];
  let arguments = (ins Optional<AnyRankedTensor>:$trips,
                       Optional<AnyRankedTensor>:$condition,
                       Variadic<AnyRankedTensor>:$inits);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    (`trips` $trips^ `:` type($trips))?
    (`while` $condition^ `:` type($condition))?
    (`inits` $inits^ `:` type($inits))? (`->` type($results)^)?
    attr-dict-with-keyword $body
  }];
  let hasVerifier = 1;
}

#endif // TCC_GRAPH_CONTROL
