// RUN: tcc-opt %s --tcc-fuse-ops --tcc-verify-fusion --split-input-file | FileCheck %s
// Kernels that nothing can follow.

// A scan reads cheap producers as it goes; what follows is another kernel.
// CHECK-LABEL: func @scan
// CHECK:         graph.fused <scan> (%arg0)
// CHECK:           graph.neg
// CHECK:           graph.cumulative
// CHECK:         graph.fused <pointwise>
// CHECK:           graph.exp
func.func @scan(%x: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %n = graph.neg %x : (tensor<8x64xf32>) -> tensor<8x64xf32>
  %c = graph.cumulative <sum> %n {axis = 1 : i64} : (tensor<8x64xf32>) -> tensor<8x64xf32>
  %e = graph.exp %c : (tensor<8x64xf32>) -> tensor<8x64xf32>
  return %e : tensor<8x64xf32>
}

// -----

// An irregular kernel has all results of its op, read or not.
// CHECK-LABEL: func @irregular
// CHECK:         graph.fused <pointwise>
// CHECK:         %[[T:.+]]:2 = graph.fused <irregular>
// CHECK:         return %[[T]]#1
func.func @irregular(%x: tensor<8x64xf32>) -> tensor<8x3xi64> {
  %n = graph.neg %x : (tensor<8x64xf32>) -> tensor<8x64xf32>
  %v, %i = graph.top_k %n {k = 3 : i64, axis = 1 : i64} : (tensor<8x64xf32>) -> (tensor<8x3xf32>, tensor<8x3xi64>)
  return %i : tensor<8x3xi64>
}

// -----

// What an irregular kernel reads once may be computed there.
// CHECK-LABEL: func @find
// CHECK:         graph.fused <irregular> (%arg0)
// CHECK:           graph.compare
// CHECK:           graph.find
// CHECK-NOT:     = graph.fused
func.func @find(%x: tensor<64xf32>) -> tensor<9xi64> {
  %n = graph.neg %x : (tensor<64xf32>) -> tensor<64xf32>
  %m = graph.compare <gt> %x, %n : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xi1>
  %p = graph.find %m : (tensor<64xi1>) -> tensor<9xi64>
  return %p : tensor<9xi64>
}

// -----

// A window takes what follows, but reads its operand where it lies.
// CHECK-LABEL: func @window
// CHECK:         graph.fused <pointwise>
// CHECK:         graph.fused <window>
// CHECK:           graph.pool
// CHECK:           graph.relu
// CHECK-NOT:     = graph.fused
func.func @window(%x: tensor<1x8x16x16xf32>) -> tensor<1x8x8x8xf32> {
  %n = graph.neg %x : (tensor<1x8x16x16xf32>) -> tensor<1x8x16x16xf32>
  %p = graph.pool <max> %n {window = array<i64: 2, 2>, strides = array<i64: 2, 2>, pad_low = array<i64: 0, 0>,
    pad_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>, count_low = array<i64: 0, 0>, count_high = array<i64: 0, 0>}
    : (tensor<1x8x16x16xf32>) -> tensor<1x8x8x8xf32>
  %r = graph.relu %p : (tensor<1x8x8x8xf32>) -> tensor<1x8x8x8xf32>
  return %r : tensor<1x8x8x8xf32>
}
