// RUN: tcc-opt %s --tcc-lower-kernels | FileCheck %s

// While a tile is summed, the lines come that finish it: in a loop over its rows 64
// elements of the residual and of the result; but not the bias, which all rows share.
// In the loop over k the next rows of the left operand are fetched like the next
// panel of the right one: two of four k reach another line of either.
// CHECK-LABEL: func.func @residual(
// CHECK-COUNT-4:  hint = 3 : i32, rw = 0
// CHECK-NOT:      rw = 0
// CHECK-COUNT-4:  hint = 3 : i32, rw = 1
// CHECK-NOT:      hint = 3
// CHECK:          scf.for {{.*}} -> (vector<16xf32>
// CHECK-COUNT-4:  hint = 2
// CHECK-NOT:      hint = 2
// CHECK:          scf.yield
func.func @residual(%x: tensor<60x64xf32>, %w: tensor<1x64x64xf32>, %b: tensor<1x64xf32>, %r: tensor<60x64xf32>) -> tensor<60x64xf32> {
  %y = graph.fused <contraction> (%x, %w, %b, %r) : (tensor<60x64xf32>, tensor<1x64x64xf32>, tensor<1x64xf32>, tensor<60x64xf32>) -> tensor<60x64xf32> {
  ^bb0(%a: tensor<60x64xf32>, %c: tensor<1x64x64xf32>, %d: tensor<1x64xf32>, %e: tensor<60x64xf32>):
    %0 = graph.matmul %a, %c {packed_rhs} : (tensor<60x64xf32>, tensor<1x64x64xf32>) -> tensor<60x64xf32>
    %1 = graph.broadcast %d : (tensor<1x64xf32>) -> tensor<60x64xf32>
    %2 = graph.add %0, %1 : (tensor<60x64xf32>, tensor<60x64xf32>) -> tensor<60x64xf32>
    %3 = graph.add %2, %e : (tensor<60x64xf32>, tensor<60x64xf32>) -> tensor<60x64xf32>
    graph.yield %3 : tensor<60x64xf32>
  }
  return %y : tensor<60x64xf32>
}

// Many products would drive those lines out again, and many columns use a row
// often enough: there remains the next panel.
// CHECK-LABEL: func.func @large(
// CHECK-NOT:      rw = 1
// CHECK-COUNT-1:  hint = 2
// CHECK-NOT:      hint = 2
// CHECK:          scf.yield
func.func @large(%x: tensor<126x768xf32>, %w: tensor<5x768x64xf32>) -> tensor<126x320xf32> {
  %y = graph.fused <contraction> (%x, %w) : (tensor<126x768xf32>, tensor<5x768x64xf32>) -> tensor<126x320xf32> {
  ^bb0(%a: tensor<126x768xf32>, %b: tensor<5x768x64xf32>):
    %0 = graph.matmul %a, %b {packed_rhs} : (tensor<126x768xf32>, tensor<5x768x64xf32>) -> tensor<126x320xf32>
    graph.yield %0 : tensor<126x320xf32>
  }
  return %y : tensor<126x320xf32>
}
