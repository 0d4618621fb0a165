#ifndef TCC_TARGET_PASSES
#define TCC_TARGET_PASSES

include "mlir/Pass/PassBase.td"

def SetTargetPass : Pass<"tcc-set-target", "mlir::ModuleOp"> {
  let summary = "name the target that a module is compiled for";
  let description = [{
    Passes after it ask that target. An unknown one is an error, and another one
    than the module has.

    ```mlir
    module {
    // becomes
    module attributes {graph.target = "cuda"} {
    ```
  }];
  let options = [Option<"name", "name", "std::string", "\"\"",
                        "as of tcc's --target; none: the host">];
}

#endif // TCC_TARGET_PASSES
