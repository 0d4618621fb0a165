#ifndef TCC_EXEC_PASSES
#define TCC_EXEC_PASSES

include "mlir/Pass/PassBase.td"

class TccExecPass<string mnemonic> : Pass<"tcc-" # mnemonic, "mlir::ModuleOp"> {
  let dependentDialects = ["::tcc::exec::ExecDialect"];
}

def ScheduleCommandsPass : TccExecPass<"schedule-commands"> {
  let summary = "order commands so that less memory is live at once";
  let description = [{
    Each block keeps its order, or takes the order that runs next what frees the
    most scratch, whichever has fewer bytes live at its peak. On one lane any order
    that respects reads and writes takes the same time.

    ```mlir
    launch @a writes %big1; launch @b writes %big2; launch @c reads %big1
    // becomes
    launch @a writes %big1; launch @c reads %big1; launch @b writes %big2
    ```
  }];
}

def MergeKernelsPass : TccExecPass<"merge-kernels"> {
  let summary = "one kernel for all equal computations";
  let description = [{
    Kernels whose bodies are equal, but for locations, become the first of them,
    so that each computation is compiled once.

    ```mlir
    exec.kernel @k0 { relu }   exec.kernel @k1 { relu }
    exec.launch @k0 ...        exec.launch @k1 ...
    // becomes
    exec.kernel @k0 { relu }
    exec.launch @k0 ...        exec.launch @k0 ...
    ```
  }];
}

def PlanMemoryPass : TccExecPass<"plan-memory"> {
  let summary = "give every scratch buffer its offset in the arena";
  let description = [{
    Buffers are placed at their upper bounds, the largest first, each in the
    smallest gap among the buffers that live at the same time. While the arena is
    larger than the most bytes live at once, other orders are tried. Buffers that
    nothing uses are erased. Runs after the last change of the order.

    ```mlir
    %0 = exec.buffer scratch bytes affine_map<() -> (256)> bound 256 : <host>
    // becomes
    %0 = exec.buffer scratch bytes affine_map<() -> (256)> bound 256 offset 0
      : <host>
    ```
  }];
}

#endif // TCC_EXEC_PASSES
