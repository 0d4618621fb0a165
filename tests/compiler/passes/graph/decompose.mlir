// RUN: tcc-opt %s --tcc-decompose | FileCheck %s
// Composites without a kernel become simpler ops; those with one stay.

// CHECK-LABEL: func @few_queries
// CHECK:         graph.matmul
// CHECK:         graph.softmax
// CHECK:         graph.matmul
// CHECK-NOT:     graph.attention
func.func @few_queries(%q: tensor<2x8x16xf32>, %k: tensor<2x4x16xf32>, %v: tensor<2x4x16xf32>)
    -> tensor<2x8x16xf32> {
  %y = graph.attention %q, %k, %v {scale = 0.25 : f64}
    : (tensor<2x8x16xf32>, tensor<2x4x16xf32>, tensor<2x4x16xf32>) -> tensor<2x8x16xf32>
  return %y : tensor<2x8x16xf32>
}

// CHECK-LABEL: func @attention
// CHECK:         graph.attention
func.func @attention(%q: tensor<2x32x16xf32>, %k: tensor<2x4x16xf32>, %v: tensor<2x4x16xf32>)
    -> tensor<2x32x16xf32> {
  %y = graph.attention %q, %k, %v {scale = 0.25 : f64}
    : (tensor<2x32x16xf32>, tensor<2x4x16xf32>, tensor<2x4x16xf32>) -> tensor<2x32x16xf32>
  return %y : tensor<2x32x16xf32>
}

// CHECK-LABEL: func @batch_norm
// CHECK:         graph.sqrt
// CHECK:         graph.mul
// CHECK:         graph.add
// CHECK-NOT:     graph.batch_norm
func.func @batch_norm(%x: tensor<2x4xf32>, %p: tensor<4xf32>) -> tensor<2x4xf32> {
  %y = graph.batch_norm %x, %p, %p, %p, %p {epsilon = 1.0e-5 : f64}
    : (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// CHECK-LABEL: func @filter_gradient
// CHECK:         graph.conv_filter_gradient
func.func @filter_gradient(%x: tensor<2x9x4xf32>, %d: tensor<2x9x6xf32>) -> tensor<6x3x4xf32> {
  %y = graph.conv_filter_gradient %x, %d {groups = 1 : i64, window = array<i64: 3>,
    strides = array<i64: 1>, pad_low = array<i64: 1>, dilations = array<i64: 1>}
    : (tensor<2x9x4xf32>, tensor<2x9x6xf32>) -> tensor<6x3x4xf32>
  return %y : tensor<6x3x4xf32>
}

// Of a window of one pixel it is a product.
// CHECK-LABEL: func @filter_gradient_of_pixels
// CHECK:         %[[X:.+]] = graph.slice %arg0 {{.*}} -> tensor<2x5x4xf32>
// CHECK:         %[[P:.+]] = graph.reshape %[[X]] : {{.*}} -> tensor<10x4xf32>
// CHECK:         graph.matmul %{{.+}}, %[[P]] {transpose_lhs} : (tensor<10x6xf32>, tensor<10x4xf32>)
func.func @filter_gradient_of_pixels(%x: tensor<2x9x4xf32>, %d: tensor<2x5x6xf32>) -> tensor<6x1x4xf32> {
  %y = graph.conv_filter_gradient %x, %d {groups = 1 : i64, window = array<i64: 1>,
    strides = array<i64: 2>, pad_low = array<i64: 0>, dilations = array<i64: 1>}
    : (tensor<2x9x4xf32>, tensor<2x5x6xf32>) -> tensor<6x1x4xf32>
  return %y : tensor<6x1x4xf32>
}

// CHECK-LABEL: func @filter_gradient_of_groups
// CHECK-NOT:     graph.conv_filter_gradient
func.func @filter_gradient_of_groups(%x: tensor<2x9x4xf32>, %d: tensor<2x9x6xf32>) -> tensor<6x3x2xf32> {
  %y = graph.conv_filter_gradient %x, %d {groups = 2 : i64, window = array<i64: 3>,
    strides = array<i64: 1>, pad_low = array<i64: 1>, dilations = array<i64: 1>}
    : (tensor<2x9x4xf32>, tensor<2x9x6xf32>) -> tensor<6x3x2xf32>
  return %y : tensor<6x3x2xf32>
}
