// RUN: tcc-opt %s --split-input-file --tcc-mix-precision --tcc-simplify | FileCheck %s
// RUN: tcc-opt %s --split-input-file --tcc-mix-precision=type=f16 | FileCheck %s --check-prefix=F16

// A product reads narrow operands and sums in f32. What it reads is stored once,
// narrow: the other reader widens it. An argument is there as it is.
// CHECK-LABEL: func @product
// CHECK-SAME:    (%[[X:.+]]: tensor<4x8xf32>) -> tensor<4x8xf32>
// CHECK-DAG:     %[[V:.+]] = graph.cast %{{.+}} -> tensor<8x8xbf16>
// CHECK-DAG:     %[[R:.+]] = graph.relu %[[X]]
// CHECK-DAG:     %[[S:.+]] = graph.cast %[[R]] : {{.*}} -> tensor<4x8xbf16>
// CHECK-DAG:     %[[T:.+]] = graph.cast %[[S]] : {{.*}} -> tensor<4x8xf32>
// CHECK:         %[[Y:.+]] = graph.matmul %[[S]], %[[V]] : (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xf32>
// CHECK:         graph.add %[[Y]], %[[T]]
// F16-LABEL: func @product
// F16:         graph.matmul {{.*}} : (tensor<4x8xf16>, tensor<8x8xf16>) -> tensor<4x8xf32>
func.func @product(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %w = graph.weight "w" : tensor<8x8xf32>
  %r = graph.relu %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %y = graph.matmul %r, %w
    : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %z = graph.add %y, %r : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %z : tensor<4x8xf32>
}

// -----

// What moves is rounded before it moves.
// CHECK-LABEL: func @moved
// CHECK:         %[[E:.+]] = graph.exp
// CHECK:         %[[S:.+]] = graph.cast %[[E]]
// CHECK:         %[[T:.+]] = graph.transpose %[[S]]
// CHECK:         graph.concat %[[T]], %{{.+}} -> tensor<16x8xbf16>
// CHECK:         graph.matmul
func.func @moved(%x: tensor<8x8xf32>, %y: tensor<8x8xf32>) -> tensor<16x8xf32> {
  %e = graph.exp %x : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %t = graph.transpose %e [1, 0] : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %c = graph.concat %t, %y {axis = 0}
    : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
  %m = graph.matmul %c, %y
    : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
  return %m : tensor<16x8xf32>
}

// -----

// An embedding that a product reads too is stored narrow, and gathered so.
// CHECK-LABEL: func @embedding
// CHECK:         %[[W:.+]] = graph.weight "w" : tensor<64x8xf32>
// CHECK:         %[[N:.+]] = graph.cast %[[W]] : {{.*}} -> tensor<64x8xbf16>
// CHECK:         graph.gather %[[N]], %{{.+}} -> tensor<2x8xbf16>
func.func @embedding(%i: tensor<2xi64>) -> tensor<2x64xf32> {
  %w = graph.weight "w" : tensor<64x8xf32>
  %e = graph.gather %w, %i {axis = 0}
    : (tensor<64x8xf32>, tensor<2xi64>) -> tensor<2x8xf32>
  %n = graph.tanh %e : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %y = graph.matmul %n, %w {transpose_rhs}
    : (tensor<2x8xf32>, tensor<64x8xf32>) -> tensor<2x64xf32>
  return %y : tensor<2x64xf32>
}

// -----

// Norms, reductions and sums of a product or two stay as they are.
// CHECK-LABEL: func @kept
// CHECK-NOT:     bf16
// CHECK:         return
func.func @kept(%x: tensor<4x1xf32>, %f: tensor<1x8xf32>) -> tensor<4xf32> {
  %p = graph.matmul %x, %f
    : (tensor<4x1xf32>, tensor<1x8xf32>) -> tensor<4x8xf32>
  %s = graph.softmax %p {axis = 1} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %r = graph.reduce <sum> %s [1] : (tensor<4x8xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// Other types than f32 are what the model says.
// CHECK-LABEL: func @double
// CHECK-NOT:     bf16
// CHECK:         return
func.func @double(%x: tensor<4x8xf64>, %y: tensor<8x8xf64>) -> tensor<4x8xf64> {
  %m = graph.matmul %x, %y
    : (tensor<4x8xf64>, tensor<8x8xf64>) -> tensor<4x8xf64>
  return %m : tensor<4x8xf64>
}

// -----

// The gradient of a filter is a product too.
// CHECK-LABEL: func @filter_gradient
// CHECK:         graph.conv_filter_gradient {{.*}} : (tensor<2x8x16xbf16>, tensor<2x8x32xbf16>) -> tensor<32x3x16xf32>
func.func @filter_gradient(%x: tensor<2x8x16xf32>, %d: tensor<2x8x32xf32>)
    -> tensor<32x3x16xf32> {
  %y = graph.conv_filter_gradient %x, %d {window = array<i64: 3>,
    strides = array<i64: 1>, pad_low = array<i64: 1>, dilations = array<i64: 1>,
    groups = 1 : i64} : (tensor<2x8x16xf32>, tensor<2x8x32xf32>)
    -> tensor<32x3x16xf32>
  return %y : tensor<32x3x16xf32>
}

// -----

// A sum that several ops read is stored, narrow, as other products follow from it.
// CHECK-LABEL: func @several_readers
// CHECK:         %[[Y:.+]] = graph.matmul
// CHECK:         %[[S:.+]] = graph.cast %[[Y]] : {{.*}} -> tensor<4x8xbf16>
// CHECK:         %[[W:.+]] = graph.cast %[[S]] : {{.*}} -> tensor<4x8xf32>
// CHECK:         graph.exp %[[W]]
// CHECK:         graph.tanh %[[W]]
func.func @several_readers(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %w = graph.weight "w" : tensor<8x8xf32>
  %y = graph.matmul %x, %w
    : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %e = graph.exp %y : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %t = graph.tanh %y : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %a = graph.mul %e, %t : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %z = graph.matmul %a, %w
    : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  return %z : tensor<4x8xf32>
}
