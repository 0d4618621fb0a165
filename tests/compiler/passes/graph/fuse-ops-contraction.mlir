// RUN: tcc-opt %s --tcc-fuse-ops --tcc-verify-fusion --split-input-file | FileCheck %s
// A contraction takes what follows it, elementwise, and cheap operands.

// Bias, activation and residual; the reshape between them moves outside.
// CHECK-LABEL: func @epilogue
// CHECK:         %[[RES:.+]] = graph.reshape %arg3
// CHECK:         %[[Y:.+]] = graph.fused <contraction> (%arg0, %arg1, %arg2, %[[RES]])
// CHECK:           graph.matmul
// CHECK:           graph.broadcast
// CHECK:           graph.gelu
// CHECK-NOT:       graph.reshape
// CHECK:           graph.yield %{{.+}} : tensor<128x64xf32>
// CHECK:         graph.reshape %[[Y]] : (tensor<128x64xf32>) -> tensor<8x16x64xf32>
func.func @epilogue(%x: tensor<128x32xf32>, %w: tensor<32x64xf32>, %b: tensor<64xf32>,
                    %r: tensor<8x16x64xf32>) -> tensor<8x16x64xf32> {
  %m = graph.matmul %x, %w : (tensor<128x32xf32>, tensor<32x64xf32>) -> tensor<128x64xf32>
  %v = graph.reshape %m : (tensor<128x64xf32>) -> tensor<8x16x64xf32>
  %c = graph.broadcast %b : (tensor<64xf32>) -> tensor<8x16x64xf32>
  %a = graph.add %v, %c : (tensor<8x16x64xf32>, tensor<8x16x64xf32>) -> tensor<8x16x64xf32>
  %g = graph.gelu %a : (tensor<8x16x64xf32>) -> tensor<8x16x64xf32>
  %y = graph.add %g, %r : (tensor<8x16x64xf32>, tensor<8x16x64xf32>) -> tensor<8x16x64xf32>
  return %y : tensor<8x16x64xf32>
}

// -----

// A transposed operand is read while it is packed.
// CHECK-LABEL: func @prologue
// CHECK:         graph.fused <contraction> (%arg0, %arg1)
// CHECK:           graph.transpose
// CHECK:           graph.matmul
// CHECK-NOT:     = graph.fused
func.func @prologue(%x: tensor<16x4x32xf32>, %w: tensor<4x32x8xf32>) -> tensor<4x16x8xf32> {
  %t = graph.transpose %x [1, 0, 2] : (tensor<16x4x32xf32>) -> tensor<4x16x32xf32>
  %m = graph.matmul %t, %w : (tensor<4x16x32xf32>, tensor<4x32x8xf32>) -> tensor<4x16x8xf32>
  return %m : tensor<4x16x8xf32>
}

// -----

// An elementary function is computed once, before: not while packing.
// CHECK-LABEL: func @costly_operand
// CHECK:         graph.fused <pointwise>
// CHECK:         graph.fused <contraction>
func.func @costly_operand(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %e = graph.exp %x : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %m = graph.matmul %e, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %m : tensor<64x64xf32>
}

// -----

// Two contractions are two kernels.
// CHECK-LABEL: func @two_contractions
// CHECK:         graph.fused <contraction>
// CHECK:         graph.fused <contraction>
func.func @two_contractions(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %a = graph.matmul %x, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %b = graph.matmul %a, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %b : tensor<64x64xf32>
}

// -----

// What only shares an input with a product is no part of its kernel.
// CHECK-LABEL: func @sibling
// CHECK:         graph.fused <contraction>
// CHECK:           graph.matmul
// CHECK:           graph.add
// CHECK-NOT:       graph.mul
// CHECK:         graph.fused <pointwise>
func.func @sibling(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>, %r: tensor<64x64xf32>)
    -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  %m = graph.matmul %x, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %a = graph.add %m, %r : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %b = graph.mul %r, %r : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %a, %b : tensor<64x64xf32>, tensor<64x64xf32>
}

// -----

// Slices that a batch chooses, as tokens do experts, are read where they lie; rows that
// are chosen one by one are not.
// CHECK-LABEL: func @gathered_batch
// CHECK-SAME:    (%[[W:.*]]: tensor<4x512x256xf32>, %[[I:.*]]: tensor<64xi64>
// CHECK:         graph.fused <contraction> ({{.*}}%[[W]], %[[I]]
// CHECK:           graph.gather
// CHECK:           graph.matmul
// CHECK-NOT:     graph.fused <
func.func @gathered_batch(%w: tensor<4x512x256xf32>, %i: tensor<64xi64>, %x: tensor<64x256x1xf32>)
    -> tensor<64x512x1xf32> {
  %g = graph.gather %w, %i {axis = 0 : i64} : (tensor<4x512x256xf32>, tensor<64xi64>) -> tensor<64x512x256xf32>
  %0 = graph.matmul %g, %x : (tensor<64x512x256xf32>, tensor<64x256x1xf32>) -> tensor<64x512x1xf32>
  return %0 : tensor<64x512x1xf32>
}

// -----

// CHECK-LABEL: func @gathered_rows
// CHECK:         graph.fused <pointwise>
// CHECK:           graph.gather
// CHECK:         graph.fused <contraction>
func.func @gathered_rows(%w: tensor<400x256xf32>, %i: tensor<64xi64>, %x: tensor<256x40xf32>) -> tensor<64x40xf32> {
  %g = graph.gather %w, %i {axis = 0 : i64} : (tensor<400x256xf32>, tensor<64xi64>) -> tensor<64x256xf32>
  %0 = graph.matmul %g, %x : (tensor<64x256xf32>, tensor<256x40xf32>) -> tensor<64x40xf32>
  return %0 : tensor<64x40xf32>
}
