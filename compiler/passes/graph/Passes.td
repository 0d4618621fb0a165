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
    nothing changes. Identities hold bit for bit but for pow(x, 2) and pow(x, 3).
    Afterwards a constant of equal elements is a broadcast scalar, and an `if`
    on a constant is the branch taken.

    ```mlir
    %c = graph.constant dense<1.0> : tensor<4xf32>
    %y = graph.mul %x, %c : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    // becomes %x
    ```
  }];
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
