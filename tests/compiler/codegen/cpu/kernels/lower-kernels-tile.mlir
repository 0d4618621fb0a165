// RUN: tcc-opt %s --tcc-lower-kernels | FileCheck %s
// RUN: tcc-opt %s --tcc-lower-kernels=vector-bytes=32 | FileCheck %s --check-prefix=NARROW

// Four k make an iteration. Where all of k is a multiple of that, nothing is left over.
// With half the registers, a loop over columns sums a part of a tile at a time.
// CHECK-LABEL: func.func @whole(
// CHECK-COUNT-1: iter_args
// CHECK-NOT:     iter_args
// CHECK:         return
// NARROW-LABEL: func.func @whole(
// NARROW:         scf.for %{{.*}} = %c0{{.*}} to %c64{{.*}} step %c16
// NARROW-COUNT-1: iter_args
// NARROW-NOT:     iter_args
// NARROW:         return
func.func @whole(%x: tensor<60x96xf32>, %w: tensor<1x96x64xf32>) -> tensor<60x64xf32> {
  %y = graph.fused <contraction> (%x, %w) : (tensor<60x96xf32>, tensor<1x96x64xf32>) -> tensor<60x64xf32> {
  ^bb0(%a: tensor<60x96xf32>, %b: tensor<1x96x64xf32>):
    %0 = graph.matmul %a, %b {packed_rhs} : (tensor<60x96xf32>, tensor<1x96x64xf32>) -> tensor<60x64xf32>
    graph.yield %0 : tensor<60x64xf32>
  }
  return %y : tensor<60x64xf32>
}

// A rest of k has a loop of its own, a rest of columns a narrower part: 40 are two parts
// of two vectors and one of one.
// CHECK-LABEL: func.func @rests(
// CHECK-COUNT-2: iter_args
// CHECK-NOT:     iter_args
// CHECK:         return
// NARROW-LABEL: func.func @rests(
// NARROW-COUNT-3: iter_args
// NARROW-NOT:     iter_args
// NARROW:         return
func.func @rests(%x: tensor<60x97xf32>, %w: tensor<1x97x48xf32>) -> tensor<60x40xf32> {
  %y = graph.fused <contraction> (%x, %w) : (tensor<60x97xf32>, tensor<1x97x48xf32>) -> tensor<60x40xf32> {
  ^bb0(%a: tensor<60x97xf32>, %b: tensor<1x97x48xf32>):
    %0 = graph.matmul %a, %b {packed_rhs} : (tensor<60x97xf32>, tensor<1x97x48xf32>) -> tensor<60x40xf32>
    graph.yield %0 : tensor<60x40xf32>
  }
  return %y : tensor<60x40xf32>
}

// Blocks of k that a plan makes 98 deep leave a rest each; those of 128 leave none.
// CHECK-LABEL: func.func @blocks(
// CHECK-COUNT-2: iter_args
// CHECK-NOT:     iter_args
// CHECK:         return
func.func @blocks(%x: tensor<60x1024xf32>, %w: tensor<1x1024x64xf32>) -> tensor<60x64xf32> {
  %y = graph.fused <contraction> (%x, %w) {plan = {blocking = array<i64: 60, 64, 98>}} : (tensor<60x1024xf32>, tensor<1x1024x64xf32>) -> tensor<60x64xf32> {
  ^bb0(%a: tensor<60x1024xf32>, %b: tensor<1x1024x64xf32>):
    %0 = graph.matmul %a, %b {packed_rhs} : (tensor<60x1024xf32>, tensor<1x1024x64xf32>) -> tensor<60x64xf32>
    graph.yield %0 : tensor<60x64xf32>
  }
  return %y : tensor<60x64xf32>
}
// CHECK-LABEL: func.func @whole_blocks(
// CHECK-COUNT-1: iter_args
// CHECK-NOT:     iter_args
// CHECK:         return
func.func @whole_blocks(%x: tensor<60x1024xf32>, %w: tensor<1x1024x64xf32>) -> tensor<60x64xf32> {
  %y = graph.fused <contraction> (%x, %w) {plan = {blocking = array<i64: 60, 64, 128>}} : (tensor<60x1024xf32>, tensor<1x1024x64xf32>) -> tensor<60x64xf32> {
  ^bb0(%a: tensor<60x1024xf32>, %b: tensor<1x1024x64xf32>):
    %0 = graph.matmul %a, %b {packed_rhs} : (tensor<60x1024xf32>, tensor<1x1024x64xf32>) -> tensor<60x64xf32>
    graph.yield %0 : tensor<60x64xf32>
  }
  return %y : tensor<60x64xf32>
}
