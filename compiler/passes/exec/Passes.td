#ifndef TCC_EXEC_PASSES
#define TCC_EXEC_PASSES

include "mlir/Pass/PassBase.td"

class TccExecPass<string mnemonic> : Pass<"tcc-" # mnemonic, "mlir::ModuleOp"> {
  let dependentDialects = ["::tcc::exec::ExecDialect"];
}

def UpdateVariablesPass : TccExecPass<"update-variables"> {
  let summary = "compute new values of variables where the variables lie";
  let description = [{
    Lowering computes the new value of a variable in scratch and copies it, at
    the end or where ranks sum it. Where all else that uses the old value runs
    before the command that computes it, or that is a launch that can work in
    place, the command writes the variable itself. Runs before the order changes:
    it keeps the commands that read the old value before the update.

    ```mlir
    exec.launch @step ins(%w, %g) outs(%scratch)
    exec.copy %scratch to %w
    // becomes
    exec.launch @step ins(%w, %g) outs(%w)
    ```
  }];
  let dependentDialects = ["::tcc::exec::ExecDialect",
                           "::tcc::graph::GraphDialect"];
}

def ScheduleCommandsPass : TccExecPass<"schedule-commands"> {
  let summary = "order commands so that less memory is live at once";
  let description = [{
    Each block keeps its order, or takes the order that runs next what frees the
    most scratch, or either with what adds bytes moved to its first reader and what
    frees some moved to the front: whichever has fewest bytes live at its peak. On
    one lane any order that respects reads and writes takes the same time. What
    goes on beside other commands is started as early, and waited for as late, as
    it may be with no more bytes live.

    ```mlir
    launch @a writes %big1; launch @b writes %big2; launch @c reads %big1
    // becomes
    launch @a writes %big1; launch @c reads %big1; launch @b writes %big2
    ```
  }];
}

def RecomputeValuesPass : TccExecPass<"recompute-values"> {
  let summary = "compute values again so that entry points fit into a budget";
  let description = [{
    Values that are in memory unread for long are dropped and made again before
    they are read, so that each entry's arena, with `fixed` other bytes, has no
    more than `budget` bytes, in the least time that is found by the cost model. What is made again are whole
    kernels, or those pointwise ops of one that lead to a result from others.
    Runs after the order is chosen and before buffers are shared; the plan of each
    choice is made on a copy, so that the promise is kept.

    ```mlir
    launch @a writes %1; launch @b reads %1; ...; launch @c reads %1
    // becomes
    launch @a writes %1; launch @b reads %1; ...
    launch @a writes %2; launch @c reads %2
    ```
  }];
  let options = [
    Option<"budget", "budget", "int64_t", "INT64_MAX",
           "bytes that the program may need">,
    Option<"fixed", "fixed", "int64_t", "0", "bytes of it that are no arena">];
  let dependentDialects = ["::tcc::exec::ExecDialect",
    "::tcc::graph::GraphDialect", "::mlir::arith::ArithDialect",
    "::mlir::math::MathDialect", "::mlir::scf::SCFDialect"];
}

def ShareBuffersPass : TccExecPass<"share-buffers"> {
  let summary = "write results over inputs that nothing reads afterwards";
  let description = [{
    A result takes the buffer of an input where the target can compute it in place
    (`codegen::canShareBuffer`, `Target::canOverwrite`), the input is scratch, and
    this launch is its last reader; the computation notes it as `in_place`. A state
    is updated in place where its next value is written after the last read, or by
    a launch that can.
    Runs after the last change of the order, before kernels are merged.

    ```mlir
    exec.launch @relu ins(%a) outs(%b)   // the last use of %a
    // becomes
    exec.launch @relu ins(%a) outs(%a)
    ```
  }];
  let dependentDialects = ["::tcc::exec::ExecDialect",
                           "::tcc::graph::GraphDialect"];
}

def SelectKernelsPass : TccExecPass<"select-kernels"> {
  let summary = "ask the target how each kernel is launched";
  let description = [{
    Launches get size arguments, number of tasks, the fault buffer where the
    kernel checks indices, and the work that the cost model counts; entry points
    get the scratch that each worker needs. A kernel that the target does not
    support is an error.

    ```mlir
    exec.launch @relu ins(%x) outs(%y) node "relu" : ...
    // becomes
    exec.launch @relu ins(%x) outs(%y) sizes #none tasks #one node "relu"
      {bytes = ..., flops = ...} : ...
    ```
  }];
  // The cost model counts the ops of scalar bodies.
  let dependentDialects = ["::tcc::exec::ExecDialect",
    "::tcc::graph::GraphDialect", "::mlir::arith::ArithDialect",
    "::mlir::math::MathDialect", "::mlir::scf::SCFDialect"];
}

def AddCandidatesPass : TccExecPass<"add-candidates"> {
  let summary = "add kernels that do the same by other plans";
  let description = [{
    A kernel that takes 1 % of the predicted time or more gets candidates: copies
    by the plans that its target names first of those that may be faster
    (`KernelInfo::alternatives`). They have the same bits. What runs them measures
    them (`tcc-run tune`) and takes the fastest; without a measurement, the kernel.
    After `tcc-select-kernels`.

    ```mlir
    exec.kernel @k { product, plan p }     exec.launch @k ... tasks #one
    // becomes
    exec.kernel @k {candidates = [@k_plan1]} { product, plan p }
    exec.kernel @k_plan1 { product, plan q }
    exec.launch @k ... tasks #one {candidate_tasks = #two}
    ```
  }];
  let options = [Option<"plans", "plans", "int64_t", "4",
                        "of a kernel at most, its own among them">];
  let dependentDialects = ["::tcc::exec::ExecDialect",
    "::tcc::graph::GraphDialect", "::mlir::arith::ArithDialect",
    "::mlir::math::MathDialect", "::mlir::scf::SCFDialect"];
}

def GeneralizeSizesPass : TccExecPass<"generalize-sizes"> {
  let summary = "one kernel for several sizes";
  let description = [{
    Where all tensors of a pointwise kernel have one static shape, or one element,
    the shape becomes one axis whose extent is a symbol of the kernel's own, which
    launches bind: kernels that differ in their shapes alone are then equal, as those
    that update parameters are. Other kernels whose loops walk along memory get
    symbols for large sizes, if they differ in nothing else (SizeFamilies.h). For
    targets that compute them as fast so (`Target::getFixedExtent`).

    ```mlir
    exec.kernel @k0 { relu tensor<4x8xf32> }   exec.kernel @k1 { relu tensor<6xf32> }
    exec.launch @k0 ...                        exec.launch @k1 ...
    exec.kernel @k2 { sums tensor<40x96xf32> } exec.kernel @k3 { sums tensor<40x128xf32> }
    exec.launch @k2 ...                        exec.launch @k3 ...
    // becomes
    exec.kernel @k0 attributes {symbols = [n]} { relu tensor<n x f32> } // @k1, too
    exec.launch @k0 ... {bindings = 32}        exec.launch @k1 ... {bindings = 6}
    exec.kernel @k2 attributes {symbols = [n]} { sums tensor<40 x (32 * n) x f32> } // @k3, too
    exec.launch @k2 ... {bindings = 3}         exec.launch @k3 ... {bindings = 4}
    ```
  }];
  let dependentDialects = ["::tcc::exec::ExecDialect",
                           "::tcc::graph::GraphDialect"];
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

def AssignLanesPass : TccExecPass<"assign-lanes"> {
  let summary = "give what is started lanes of its own";
  let description = [{
    Copies that are started run on one lane, collectives of each group of ranks on
    another one, beside lane 0, which all other commands stay on; where that are more
    lanes than the runtime takes, some are shared. A start's lane waits for the last
    command of lane 0 that it must not overtake, unless it has waited for a later one.
    Runs after the last change of the order, before memory is planned.

    ```mlir
    launch @a writes %x
    launch @b
    %t = exec.start_copy %x to %y
    // becomes
    launch @a writes %x
    %e = exec.record_event
    launch @b
    exec.wait %e {lane = 1}
    %t = exec.start_copy %x to %y {lane = 1}
    ```
  }];
}

def PackScalarsPass : TccExecPass<"pack-scalars"> {
  let summary = "let scalars that one launch computes share a line of the arena";
  let description = [{
    Scratch buffers of a few bytes that one launch writes first lie side by side, as
    many as fit into the alignment of a buffer: all of them together take no more
    than the one of them that is live longest. Runs after lanes are assigned, which
    order commands by the buffers that they use.

    ```mlir
    exec.launch @k outs(%a, %b)
    // becomes
    %line = exec.buffer scratch bytes affine_map<() -> (32)> bound 32 : <host>
    %a = exec.view %line at affine_map<() -> (0)> ...
    %b = exec.view %line at affine_map<() -> (16)> ...
    exec.launch @k outs(%a, %b)
    ```
  }];
}

def VerifyLanesPass : TccExecPass<"verify-lanes"> {
  let summary = "check that lanes do not race";
  let description = [{
    No two commands that may run at the same time use the same bytes, one of them
    writing, by their buffers and by the places of these in the arena. Runs after
    memory is planned.
  }];
}

def PlanMemoryPass : TccExecPass<"plan-memory"> {
  let summary = "give every scratch buffer its offset in the arena";
  let description = [{
    Buffers are placed at their upper bounds, the largest first, each in the
    smallest gap among the buffers that may live at the same time. While the arena is
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
