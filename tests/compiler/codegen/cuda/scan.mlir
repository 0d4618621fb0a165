// RUN: tcc-opt %s --tcc-set-target=name=cuda --tcc-lower-kernels --canonicalize --cse | FileCheck %s

// A warp walks a row: five steps give each thread what is before it.
// CHECK-LABEL: gpu.func @rows(
// CHECK:         scf.for {{.+}} iter_args(%[[BEFORE:.+]] = %{{.+}}, %{{.+}} = %{{.+}})
// CHECK-COUNT-5:   gpu.shuffle{{ +}}xor
// CHECK-NOT:       gpu.shuffle
// CHECK-NOT:     gpu.barrier
// CHECK:           arith.addf %[[BEFORE]]
// CHECK:           llvm.store
func.func @rows(%x: tensor<5x100xf32>) -> tensor<5x100xf32> {
  %y = graph.fused <scan> (%x) : (tensor<5x100xf32>) -> tensor<5x100xf32> {
  ^bb0(%a: tensor<5x100xf32>):
    %0 = graph.cumulative <sum> %a {axis = 1 : i64}
        : (tensor<5x100xf32>) -> tensor<5x100xf32>
    graph.yield %0 : tensor<5x100xf32>
  }
  return %y : tensor<5x100xf32>
}

// Long rows have a block: the warps' sums meet in shared memory.
// CHECK-LABEL: gpu.func @long_rows(
// CHECK:         scf.for
// CHECK:           llvm.store %{{.+}} : f32, !llvm.ptr<3>
// CHECK:           gpu.barrier
// CHECK-NOT:       gpu.barrier
// CHECK-COUNT-8:   llvm.load %{{.+}} : !llvm.ptr<3> -> f32
// CHECK:           llvm.store
func.func @long_rows(%x: tensor<5x3000xf32>) -> tensor<5x3000xf32> {
  %y = graph.fused <scan> (%x) : (tensor<5x3000xf32>) -> tensor<5x3000xf32> {
  ^bb0(%a: tensor<5x3000xf32>):
    %0 = graph.cumulative <sum> %a {axis = 1 : i64}
        : (tensor<5x3000xf32>) -> tensor<5x3000xf32>
    graph.yield %0 : tensor<5x3000xf32>
  }
  return %y : tensor<5x3000xf32>
}

// Neighbours along another axis have a thread each, that starts from the end.
// CHECK-LABEL: gpu.func @columns(
// CHECK-NOT:     gpu.shuffle
// CHECK:         scf.for {{.+}} iter_args(%[[SUM:.+]] = %{{.+}})
// CHECK:           arith.subi
// CHECK-DAG:       %[[NEXT:.+]] = arith.addi %[[SUM]]
// CHECK-DAG:       llvm.store %[[SUM]]
// CHECK:           scf.yield %[[NEXT]]
func.func @columns(%x: tensor<50x40xi64>) -> tensor<50x40xi64> {
  %y = graph.fused <scan> (%x) : (tensor<50x40xi64>) -> tensor<50x40xi64> {
  ^bb0(%a: tensor<50x40xi64>):
    %0 = graph.cumulative <sum> %a {axis = 0 : i64, exclusive, reverse}
        : (tensor<50x40xi64>) -> tensor<50x40xi64>
    graph.yield %0 : tensor<50x40xi64>
  }
  return %y : tensor<50x40xi64>
}
