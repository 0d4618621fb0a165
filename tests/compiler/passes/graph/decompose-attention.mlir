// RUN: tcc-opt %s --tcc-decompose --tcc-simplify | FileCheck %s
// RUN: tcc-opt %s --tcc-decompose=awaits-precision | FileCheck %s --check-prefix=AWAITS

// Gradients of attention have a kernel for narrow matrices alone. Others are
// products, of one softmax of the scores.
// CHECK-LABEL: func @wide
// CHECK-NOT:     graph.attention
// CHECK:         graph.softmax
// CHECK-NOT:     graph.softmax
// CHECK:         return
// AWAITS-LABEL: func @wide
// AWAITS:        graph.attention_normalizer
// AWAITS:        graph.attention_gradient <query>
// AWAITS:        graph.attention_gradient <value>
func.func @wide(%x: tensor<2x16x8xf32>, %s: tensor<2x16x1xf32>)
    -> (tensor<2x16x8xf32>, tensor<2x16x8xf32>) {
  %n = graph.attention_normalizer %x, %x {scale = 1.0 : f64}
    : (tensor<2x16x8xf32>, tensor<2x16x8xf32>) -> tensor<2x16x1xf32>
  %0 = graph.attention_gradient <query> %x, %x, %x, %x, %n, %s {scale = 1.0 : f64}
    : (tensor<2x16x8xf32>, tensor<2x16x8xf32>, tensor<2x16x8xf32>,
       tensor<2x16x8xf32>, tensor<2x16x1xf32>, tensor<2x16x1xf32>)
    -> tensor<2x16x8xf32>
  %1 = graph.attention_gradient <value> %x, %x, %x, %x, %n, %s {scale = 1.0 : f64}
    : (tensor<2x16x8xf32>, tensor<2x16x8xf32>, tensor<2x16x8xf32>,
       tensor<2x16x8xf32>, tensor<2x16x1xf32>, tensor<2x16x1xf32>)
    -> tensor<2x16x8xf32>
  return %0, %1 : tensor<2x16x8xf32>, tensor<2x16x8xf32>
}

// CHECK-LABEL: func @narrow
// CHECK:         graph.attention_normalizer
func.func @narrow(%x: tensor<2x16x8xbf16>) -> tensor<2x16x1xf32> {
  %n = graph.attention_normalizer %x, %x {scale = 1.0 : f64}
    : (tensor<2x16x8xbf16>, tensor<2x16x8xbf16>) -> tensor<2x16x1xf32>
  return %n : tensor<2x16x1xf32>
}

// A mask of four windows is repeated for each image; its gradient is the sum over
// the images, which other sums add nothing to.
// CHECK-LABEL: func @repeated
// CHECK:         graph.broadcast %arg1 {{.*}} -> tensor<3x4x16x16xf32>
// CHECK:         %[[S:.+]] = graph.softmax
// CHECK:         %[[D:.+]] = graph.mul %[[S]]
// CHECK-NOT:     graph.mul
// CHECK:         %[[R:.+]] = graph.reshape %[[D]] {{.*}} -> tensor<3x4x16x16xf32>
// CHECK:         %[[SUM:.+]] = graph.reduce <sum> %[[R]] [0]
// CHECK:         graph.reshape %[[SUM]] {{.*}} -> tensor<1x4x16x16xf32>
// CHECK:         graph.concat
func.func @repeated(%x: tensor<12x16x8xf32>, %m: tensor<4x16x16xf32>,
    %s: tensor<12x16x1xf32>) -> tensor<3x4x16x16xf32> {
  %n = graph.attention_normalizer %x, %x mask %m {scale = 0.5 : f64}
    : (tensor<12x16x8xf32>, tensor<12x16x8xf32>, tensor<4x16x16xf32>)
    -> tensor<12x16x1xf32>
  %0 = graph.attention_gradient <mask> %x, %x, %x, %x, %n, %s mask %m {scale = 0.5 : f64}
    : (tensor<12x16x8xf32>, tensor<12x16x8xf32>, tensor<12x16x8xf32>,
       tensor<12x16x8xf32>, tensor<12x16x1xf32>, tensor<12x16x1xf32>,
       tensor<4x16x16xf32>) -> tensor<3x4x16x16xf32>
  return %0 : tensor<3x4x16x16xf32>
}
