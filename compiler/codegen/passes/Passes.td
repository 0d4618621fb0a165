#ifndef TCC_CODEGEN_PASSES
#define TCC_CODEGEN_PASSES

include "mlir/Pass/PassBase.td"

def LowerKernelsPass : Pass<"tcc-lower-kernels", "mlir::ModuleOp"> {
  let summary = "show the loops of each fused region";
  let description = [{
    Each function with a `graph.fused` op is replaced by the kernel of its first
    one, as it goes to the target's code generation. For tests and for reading:
    the compiler emits each kernel into a module of its own.

    ```mlir
    func.func @relu(%x: tensor<8xf32>) -> tensor<8xf32> {
      %y = graph.fused <pointwise> (%x) ...
    // becomes
    func.func @relu(%buffers: !llvm.ptr, %sizes: !llvm.ptr, %first: i64,
                    %last: i64, %scratch: !llvm.ptr) {
      scf.for %task = ...
    ```
  }];
  let options = [
    Option<"vectorBytes", "vector-bytes", "int64_t", "64",
           "bytes of a vector register">];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::DLTIDialect",
    "::mlir::func::FuncDialect",
    "::mlir::gpu::GPUDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::math::MathDialect",
    "::mlir::memref::MemRefDialect", "::mlir::NVVM::NVVMDialect",
    "::mlir::scf::SCFDialect", "::tcc::exec::ExecDialect",
    "::mlir::vector::VectorDialect"];
}

def SplitLoopsPass : Pass<"tcc-split-loops", "mlir::ModuleOp"> {
  let summary = "cut innermost loops where a condition changes";
  let description = [{
    A branch on `iv + c < bound`, the operands of a concatenation say, becomes
    two loops, so that each reads adjacent elements. Constants are to be outside
    of loops.

    ```mlir
    scf.for %i = %from to %to step %c1 {
      %is_left = arith.cmpi slt, %i, %n : index
      %x = scf.if %is_left ...
    // becomes
    %cut = max(%from, min(%n, %to))
    scf.for %i = %from to %cut step %c1 { ...
    scf.for %i = %cut to %to step %c1 { ...
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::scf::SCFDialect"];
}

def EmitPtxPass : Pass<"tcc-emit-ptx", "mlir::ModuleOp"> {
  let summary = "print the PTX of a module with a gpu.module";
  let description = [{
    Prints to standard output what the compiler assembles for a GPU; the module
    is erased. For tests and for reading.
  }];
  let options = [
    Option<"arch", "arch", "std::string", "\"sm_90\"", "architecture">];
}

#endif // TCC_CODEGEN_PASSES
