// RUN: tcc-opt %s --tcc-sum-operands --split-input-file | FileCheck %s
// What a matrix kernel makes is summed behind the product that reads it along its depth.

// CHECK-LABEL: func @bias_of_product
// CHECK:         %[[DY:.+]] = graph.cast
// CHECK:         %[[R:.+]], %[[S:.+]] = graph.matmul_sums %arg0, %[[DY]] {transpose_lhs}
// CHECK-SAME:      (tensor<64x8xbf16>, tensor<64x16xbf16>) -> (tensor<8x16xf32>, tensor<16xf32>)
// CHECK-NOT:     graph.reduce
// CHECK:         return %[[R]], %[[S]]
func.func @bias_of_product(%x: tensor<64x8xbf16>, %d: tensor<64x24xbf16>, %w: tensor<24x16xbf16>)
    -> (tensor<8x16xf32>, tensor<16xf32>) {
  %m = graph.matmul %d, %w : (tensor<64x24xbf16>, tensor<24x16xbf16>) -> tensor<64x16xf32>
  %dy = graph.cast %m : (tensor<64x16xf32>) -> tensor<64x16xbf16>
  %r = graph.matmul %x, %dy {transpose_lhs} : (tensor<64x8xbf16>, tensor<64x16xbf16>) -> tensor<8x16xf32>
  %t = graph.reshape %dy : (tensor<64x16xbf16>) -> tensor<4x16x16xbf16>
  %v = graph.cast %t : (tensor<4x16x16xbf16>) -> tensor<4x16x16xf32>
  %s = graph.reduce <sum> %v [0, 1] : (tensor<4x16x16xf32>) -> tensor<16xf32>
  return %r, %s : tensor<8x16xf32>, tensor<16xf32>
}

// -----

// So is the left side, where the weight lies transposed; and the derivative of gelu is part of
// the product before it.
// CHECK-LABEL: func @transposed_weight
// CHECK:         graph.matmul_sums %{{.*}}, %arg0 {of_lhs, transpose_lhs}
// CHECK-SAME:      -> (tensor<16x8xf32>, tensor<16xf32>)
func.func @transposed_weight(%x: tensor<64x8xbf16>, %d: tensor<64x24xbf16>, %w: tensor<24x16xbf16>,
    %a: tensor<64x16xf32>) -> (tensor<16x8xf32>, tensor<16xf32>) {
  %m = graph.matmul %d, %w : (tensor<64x24xbf16>, tensor<24x16xbf16>) -> tensor<64x16xf32>
  %g = graph.gelu_tanh_gradient %a, %m : (tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<64x16xf32>
  %dy = graph.cast %g : (tensor<64x16xf32>) -> tensor<64x16xbf16>
  %v = graph.cast %dy : (tensor<64x16xbf16>) -> tensor<64x16xf32>
  %s = graph.reduce <sum> %v [0] : (tensor<64x16xf32>) -> tensor<16xf32>
  %r = graph.matmul %dy, %x {transpose_lhs} : (tensor<64x16xbf16>, tensor<64x8xbf16>) -> tensor<16x8xf32>
  return %r, %s : tensor<16x8xf32>, tensor<16xf32>
}

// -----

// Rows and pointwise ops sum the columns of what they make: nothing would be saved. Nor are rows
// summed, or what the product does not read along its depth.
// CHECK-LABEL: func @others
// CHECK-NOT:     graph.matmul_sums
func.func @others(%x: tensor<64x8xbf16>, %d: tensor<64x16xf32>, %y: tensor<64x64xbf16>, %z: tensor<64x16xbf16>)
    -> (tensor<8x16xf32>, tensor<16xf32>, tensor<64xf32>, tensor<64x64xf32>, tensor<64xf32>) {
  %e = graph.exp %d : (tensor<64x16xf32>) -> tensor<64x16xf32>
  %dy = graph.cast %e : (tensor<64x16xf32>) -> tensor<64x16xbf16>
  %v = graph.cast %dy : (tensor<64x16xbf16>) -> tensor<64x16xf32>
  %s = graph.reduce <sum> %v [0] : (tensor<64x16xf32>) -> tensor<16xf32>
  %r = graph.matmul %x, %dy {transpose_lhs} : (tensor<64x8xbf16>, tensor<64x16xbf16>) -> tensor<8x16xf32>
  %m = graph.matmul %y, %y : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xf32>
  %n = graph.cast %m : (tensor<64x64xf32>) -> tensor<64x64xbf16>
  %o = graph.cast %n : (tensor<64x64xbf16>) -> tensor<64x64xf32>
  %t = graph.reduce <sum> %o [1] : (tensor<64x64xf32>) -> tensor<64xf32>
  %c = graph.reduce <sum> %o [0] : (tensor<64x64xf32>) -> tensor<64xf32>
  %p = graph.matmul %n, %y : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xf32>
  return %r, %s, %t, %p, %c : tensor<8x16xf32>, tensor<16xf32>, tensor<64xf32>, tensor<64x64xf32>, tensor<64xf32>
}
