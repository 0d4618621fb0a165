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
    nothing changes.

    ```mlir
    %c = graph.constant dense<1.0> : tensor<4xf32>
    %y = graph.mul %x, %c : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    // becomes %x
    ```
  }];
}

#endif // TCC_GRAPH_PASSES
