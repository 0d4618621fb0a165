// RUN: tcc-opt %s --tcc-fuse-ops --tcc-verify-fusion --split-input-file | FileCheck %s
// Rows and the columns of panels of rows share a kernel.

// Both sums of one pass over x, whatever shapes they have it in.
// CHECK-LABEL: func @both
// CHECK:         %[[R:.+]]:3 = graph.fused <row> (%{{[a-z0-9]+}})
// CHECK-NOT:     = graph.fused
!x = tensor<1024x768xf32>
!p = tensor<32x32x768xf32>
func.func @both(%x: !x) -> (!x, tensor<1024xf32>, tensor<32x768xf32>) {
  %rows = graph.reduce <sum> %x [1] : (!x) -> tensor<1024xf32>
  %k = graph.reshape %rows : (tensor<1024xf32>) -> tensor<1024x1xf32>
  %b = graph.broadcast %k : (tensor<1024x1xf32>) -> !x
  %y = graph.sub %x, %b : (!x, !x) -> !x
  %p = graph.reshape %y : (!x) -> !p
  %columns = graph.reduce <sum> %p [1] : (!p) -> tensor<32x768xf32>
  return %y, %rows, %columns : !x, tensor<1024xf32>, tensor<32x768xf32>
}

// -----

// Panels of too many rows, too few panels, and rows too long for registers.
// CHECK-LABEL: func @apart
// CHECK-COUNT-6: = graph.fused <row>
!a = tensor<8x512x64xf32>
!b = tensor<4x64x512xf32>
!c = tensor<32x4x16384xf32>
func.func @apart(%a: !a, %b: !b, %c: !c)
    -> (tensor<8x512xf32>, tensor<8x64xf32>, tensor<4x64xf32>, tensor<4x512xf32>,
        tensor<32x4xf32>, tensor<32x16384xf32>) {
  %0 = graph.reduce <sum> %a [2] : (!a) -> tensor<8x512xf32>
  %1 = graph.reduce <sum> %a [1] : (!a) -> tensor<8x64xf32>
  %2 = graph.reduce <sum> %b [2] : (!b) -> tensor<4x64xf32>
  %3 = graph.reduce <sum> %b [1] : (!b) -> tensor<4x512xf32>
  %4 = graph.reduce <sum> %c [2] : (!c) -> tensor<32x4xf32>
  %5 = graph.reduce <sum> %c [1] : (!c) -> tensor<32x16384xf32>
  return %0, %1, %2, %3, %4, %5
      : tensor<8x512xf32>, tensor<8x64xf32>, tensor<4x64xf32>, tensor<4x512xf32>,
        tensor<32x4xf32>, tensor<32x16384xf32>
}

// -----

// Sums of columns are not read in the kernel that makes them.
// CHECK-LABEL: func @read
// CHECK:         = graph.fused <row>
// CHECK:         = graph.fused <row>
// CHECK:           graph.arg_reduce
// CHECK-NOT:       graph.broadcast
// CHECK:         return
!x = tensor<32x32x64xf32>
func.func @read(%x: !x) -> (tensor<32x32xf32>, !x, tensor<32x32xi64>) {
  %columns = graph.reduce <sum> %x [1] : (!x) -> tensor<32x64xf32>
  %k = graph.reshape %columns : (tensor<32x64xf32>) -> tensor<32x1x64xf32>
  %b = graph.broadcast %k : (tensor<32x1x64xf32>) -> !x
  %y = graph.sub %x, %b : (!x, !x) -> !x
  %rows = graph.reduce <sum> %y [2] : (!x) -> tensor<32x32xf32>
  %c = graph.reduce <sum> %y [1] : (!x) -> tensor<32x64xf32>
  %i = graph.arg_reduce <max> %y {axis = 2 : i64} : (!x) -> tensor<32x32xi64>
  %d = graph.reshape %c : (tensor<32x64xf32>) -> tensor<32x1x64xf32>
  %e = graph.broadcast %d : (tensor<32x1x64xf32>) -> !x
  return %rows, %e, %i : tensor<32x32xf32>, !x, tensor<32x32xi64>
}

// -----

// An index in a column and a sum of columns are a kernel of columns.
// CHECK-LABEL: func @columns
// CHECK:         :2 = graph.fused <row>
// CHECK-NOT:     = graph.fused
!x = tensor<16x32x64xf32>
func.func @columns(%x: !x) -> (tensor<16x64xf32>, tensor<16x64xi64>) {
  %m = graph.reduce <max> %x [1] : (!x) -> tensor<16x64xf32>
  %i = graph.arg_reduce <max> %x {axis = 1 : i64} : (!x) -> tensor<16x64xi64>
  return %m, %i : tensor<16x64xf32>, tensor<16x64xi64>
}
