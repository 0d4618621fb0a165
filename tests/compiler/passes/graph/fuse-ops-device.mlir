// RUN: tcc-opt %s --tcc-set-target=name=cuda --tcc-fuse-ops --tcc-verify-fusion --split-input-file | FileCheck %s
// On a GPU a product is kept in a form that a library has.

// Bias and relu go with the product, in one kernel.
// CHECK-LABEL: func @library_epilogue
// CHECK:         graph.fused <contraction>
// CHECK:           graph.relu
// CHECK-NOT:     = graph.fused
func.func @library_epilogue(%x: tensor<256x512xf32>, %w: tensor<512x512xf32>,
                            %b: tensor<512xf32>) -> tensor<256x512xf32> {
  %m = graph.matmul %x, %w : (tensor<256x512xf32>, tensor<512x512xf32>) -> tensor<256x512xf32>
  %c = graph.broadcast %b : (tensor<512xf32>) -> tensor<256x512xf32>
  %a = graph.add %m, %c : (tensor<256x512xf32>, tensor<256x512xf32>) -> tensor<256x512xf32>
  %y = graph.relu %a : (tensor<256x512xf32>) -> tensor<256x512xf32>
  return %y : tensor<256x512xf32>
}

// -----

// The exact gelu is no library's: it is a kernel of its own.
// CHECK-LABEL: func @own_activation
// CHECK:         graph.fused <contraction>
// CHECK:           graph.add
// CHECK-NOT:       graph.gelu
// CHECK:         graph.fused <pointwise>
// CHECK:           graph.gelu
func.func @own_activation(%x: tensor<256x512xf32>, %w: tensor<512x512xf32>,
                          %b: tensor<512xf32>) -> tensor<256x512xf32> {
  %m = graph.matmul %x, %w : (tensor<256x512xf32>, tensor<512x512xf32>) -> tensor<256x512xf32>
  %c = graph.broadcast %b : (tensor<512xf32>) -> tensor<256x512xf32>
  %a = graph.add %m, %c : (tensor<256x512xf32>, tensor<256x512xf32>) -> tensor<256x512xf32>
  %y = graph.gelu %a : (tensor<256x512xf32>) -> tensor<256x512xf32>
  return %y : tensor<256x512xf32>
}

// -----

// Where the product is small a launch costs more than the library saves.
// CHECK-LABEL: func @small_product
// CHECK:         graph.fused <contraction>
// CHECK:           graph.gelu
// CHECK-NOT:     = graph.fused
func.func @small_product(%x: tensor<4x32xf32>, %w: tensor<32x32xf32>) -> tensor<4x32xf32> {
  %m = graph.matmul %x, %w : (tensor<4x32xf32>, tensor<32x32xf32>) -> tensor<4x32xf32>
  %y = graph.gelu %m : (tensor<4x32xf32>) -> tensor<4x32xf32>
  return %y : tensor<4x32xf32>
}

// -----

// No library gathers the slices of a batch.
// CHECK-LABEL: func @gathered_batch
// CHECK:         graph.fused <pointwise>
// CHECK:           graph.gather
// CHECK:         graph.fused <contraction>
func.func @gathered_batch(%w: tensor<4x512x256xf32>, %i: tensor<64xi64>, %x: tensor<64x256x1xf32>)
    -> tensor<64x512x1xf32> {
  %g = graph.gather %w, %i {axis = 0 : i64} : (tensor<4x512x256xf32>, tensor<64xi64>) -> tensor<64x512x256xf32>
  %0 = graph.matmul %g, %x : (tensor<64x512x256xf32>, tensor<64x256x1xf32>) -> tensor<64x512x1xf32>
  return %0 : tensor<64x512x1xf32>
}
