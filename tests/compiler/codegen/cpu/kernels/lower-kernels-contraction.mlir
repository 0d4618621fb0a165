// RUN: tcc-opt %s --tcc-lower-kernels | FileCheck %s --check-prefixes=CHECK,WIDE
// RUN: tcc-opt %s --tcc-lower-kernels=vector-bytes=32 \
// RUN:   | FileCheck %s --check-prefixes=CHECK,NARROW

// The sums of a tile stay in registers through the loop over k: 6 x 64 of them
// where there are 32 registers, 6 x 16 where there are 16; four k make an
// iteration. What follows the product is computed from a finished tile.
// CHECK-LABEL: func.func @packed(
// WIDE:          %[[SUMS:.+]]:24 = scf.for {{.*}} -> (vector<16xf32>
// WIDE-COUNT-96:   math.fma
// WIDE-NOT:        math.fma
// NARROW:        %[[SUMS:.+]]:12 = scf.for {{.*}} -> (vector<8xf32>
// NARROW-COUNT-48: math.fma
// NARROW-NOT:      math.fma
// CHECK:           scf.yield
// CHECK:         llvm.store %[[SUMS]]#0
// CHECK:         scf.for
// CHECK:           scf.for
// CHECK:             arith.addf
func.func @packed(%x: tensor<64x100xf32>, %w: tensor<2x100x64xf32>, %b: tensor<1x128xf32>) -> tensor<64x128xf32> {
  %y = graph.fused <contraction> (%x, %w, %b) : (tensor<64x100xf32>, tensor<2x100x64xf32>, tensor<1x128xf32>) -> tensor<64x128xf32> {
  ^bb0(%a: tensor<64x100xf32>, %c: tensor<2x100x64xf32>, %d: tensor<1x128xf32>):
    %0 = graph.matmul %a, %c {packed_rhs} : (tensor<64x100xf32>, tensor<2x100x64xf32>) -> tensor<64x128xf32>
    %1 = graph.broadcast %d : (tensor<1x128xf32>) -> tensor<64x128xf32>
    %2 = graph.add %0, %1 : (tensor<64x128xf32>, tensor<64x128xf32>) -> tensor<64x128xf32>
    graph.yield %2 : tensor<64x128xf32>
  }
  return %y : tensor<64x128xf32>
}

// Rows that an empty axis leaves out.
// CHECK-LABEL: func.func @no_rows(
func.func @no_rows(%x: tensor<0x8xf32>, %w: tensor<2x8x64xf32>) -> tensor<0x128xf32> {
  %y = graph.fused <contraction> (%x, %w) : (tensor<0x8xf32>, tensor<2x8x64xf32>) -> tensor<0x128xf32> {
  ^bb0(%a: tensor<0x8xf32>, %b: tensor<2x8x64xf32>):
    %0 = graph.matmul %a, %b {packed_rhs} : (tensor<0x8xf32>, tensor<2x8x64xf32>) -> tensor<0x128xf32>
    graph.yield %0 : tensor<0x128xf32>
  }
  return %y : tensor<0x128xf32>
}
