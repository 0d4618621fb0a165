// RUN: tcc-opt %s --tcc-set-target=name=cuda --tcc-lower-kernels --canonicalize --cse | FileCheck %s

// A thread owns 32 elements of a column, that it keeps in shared memory. It
// walks all updates of the column in order and applies those that hit them:
// nothing is atomic but the fault flag.
// CHECK-LABEL: gpu.module @scatter
// CHECK:         llvm.mlir.global internal @scatter_shared
// CHECK-SAME:      !llvm.array<32768 x i8>
// CHECK:       gpu.func @scatter(
// CHECK:         scf.for
// CHECK:           llvm.load %{{.+}} : !llvm.ptr -> f32
// CHECK:           llvm.store %{{.+}} : f32, !llvm.ptr<3>
// CHECK:         scf.for
// CHECK:           llvm.store %{{.+}} atomic monotonic
// CHECK:           scf.if
// CHECK:             llvm.load %{{.+}} : !llvm.ptr<3> -> f32
// CHECK:             arith.addf
// CHECK:             llvm.store %{{.+}} : f32, !llvm.ptr<3>
// CHECK:         scf.for
// CHECK:           llvm.load %{{.+}} : !llvm.ptr<3> -> f32
// CHECK:           llvm.store %{{.+}} : f32, !llvm.ptr
// CHECK-NOT:     gpu.barrier
// CHECK:         gpu.return
func.func @scatter(%x: tensor<500x40xf32>, %i: tensor<30x1xi64>,
                   %u: tensor<30x40xf32>) -> tensor<500x40xf32> {
  %y = graph.fused <irregular> (%x, %i, %u)
      : (tensor<500x40xf32>, tensor<30x1xi64>, tensor<30x40xf32>)
      -> tensor<500x40xf32> {
  ^bb0(%a: tensor<500x40xf32>, %j: tensor<30x1xi64>, %b: tensor<30x40xf32>):
    %p = graph.scatter_nd %a, %j, %b {kind = #graph.scatter_kind<add>}
        : (tensor<500x40xf32>, tensor<30x1xi64>, tensor<30x40xf32>)
        -> tensor<500x40xf32>
    graph.yield %p : tensor<500x40xf32>
  }
  return %y : tensor<500x40xf32>
}

// The best of what comes after the last one: by each thread, warp and block.
// CHECK-LABEL: gpu.func @top(
// CHECK:         scf.for {{.+}} = %c0 to %c10
// CHECK:           scf.for {{.+}} step %c256
// CHECK:             arith.cmpf ugt
// CHECK:           gpu.shuffle{{ +}}xor
// CHECK:           gpu.barrier
// CHECK-NOT:       gpu.barrier
// CHECK:           llvm.store %{{.+}} : f32, !llvm.ptr
// CHECK:           llvm.store %{{.+}} : i64, !llvm.ptr
func.func @top(%x: tensor<3x700xf32>)
    -> (tensor<3x10xf32>, tensor<3x10xi64>) {
  %y:2 = graph.fused <irregular> (%x)
      : (tensor<3x700xf32>) -> (tensor<3x10xf32>, tensor<3x10xi64>) {
  ^bb0(%a: tensor<3x700xf32>):
    %v, %i = graph.top_k %a {k = 10 : i64, axis = 1 : i64}
        : (tensor<3x700xf32>) -> (tensor<3x10xf32>, tensor<3x10xi64>)
    graph.yield %v, %i : tensor<3x10xf32>, tensor<3x10xi64>
  }
  return %y#0, %y#1 : tensor<3x10xf32>, tensor<3x10xi64>
}
