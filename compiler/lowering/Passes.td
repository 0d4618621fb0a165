#ifndef TCC_LOWERING_PASSES
#define TCC_LOWERING_PASSES

include "mlir/Pass/PassBase.td"

def CarryIterationPass : Pass<"tcc-carry-iteration", "mlir::ModuleOp"> {
  let summary = "make the iteration number a carried value";
  let description = [{
    Below `graph` a loop counts in a size slot, which kernels cannot read. Where
    the body uses the iteration number, it becomes one more carried value, so that
    the addition is fused like any other op. Runs before fusion.

    ```mlir
    graph.loop trips %n inits %x ... { ^bb0(%i, %a): ... uses %i }
    // becomes
    graph.loop trips %n inits %x, %zero ... { ^bb0(%unused, %a, %i):
      ... uses %i; %next = graph.add %i, %one ... yield ..., %next }
    ```
  }];
  let dependentDialects = ["::tcc::graph::GraphDialect"];
}

def LowerToExecPass : Pass<"tcc-lower-to-exec", "mlir::ModuleOp"> {
  let summary = "functions of kernels become entry points";
  let description = [{
    Each function becomes an `exec.entry`, each `graph.fused` op an `exec.kernel`
    and its launch, each value a buffer; reshapes vanish. Kernels write to where
    a value is needed: an output of the program, the result of an `if`, the slice
    of a scan. What no kernel writes there is copied. Loops carry values in two
    halves of one buffer, which swap roles with every iteration. A collective is
    started and waited for; what need not wait is moved between later.

    Buffers lie where the target of an entry point has its kernels.

    Runs after fusion; an op that is not lowered is an error.

    ```mlir
    func.func @main(%x: tensor<4xf32> {graph.name = "x"})
        -> (tensor<4xf32> {graph.name = "y"}) {
      %0 = graph.fused <pointwise> (%x) : ...
      return %0 : tensor<4xf32>
    }
    // becomes
    exec.kernel @k0_relu { ^bb0(%a: tensor<4xf32>): graph.fused ... }
    exec.entry @main ... {
      %x = exec.buffer input 0 bytes affine_map<() -> (16)> bound 16 : <host>
      %y = exec.buffer output 0 bytes affine_map<() -> (16)> bound 16 : <host>
      exec.launch @k0_relu ins(%x) outs(%y) node "relu"
          : (!exec.buffer<host>) -> !exec.buffer<host>
    }
    ```
  }];
  let dependentDialects = ["::tcc::exec::ExecDialect",
                           "::tcc::graph::GraphDialect"];
}

#endif // TCC_LOWERING_PASSES
