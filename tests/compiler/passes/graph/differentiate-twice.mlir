// RUN: tcc-opt %s --split-input-file '--tcc-differentiate=of=y wrt=x' '--tcc-differentiate=of=d(y)/d(x) wrt=x' --canonicalize --cse | FileCheck %s

// Gradients are ops that have gradients.
// CHECK-LABEL: func.func @main
// CHECK-SAME:  {graph.name = "d(d(y)/d(x))/d(x)"}
// CHECK:       %[[Y:.*]] = graph.tanh
// CHECK:       graph.sub %{{.*}}, %{{.*}}
// CHECK:       %[[D:.*]] = graph.mul
// CHECK:       return %[[Y]], %{{.*}}, %{{.*}}
func.func @main(%x: tensor<4xf64> {graph.name = "x"}) -> (tensor<4xf64> {graph.name = "y"}) {
  %0 = graph.tanh %x : (tensor<4xf64>) -> tensor<4xf64>
  return %0 : tensor<4xf64>
}

// -----

// The gradient through a product and a softmax is made of products, two more
// of which are its own gradient's.
// CHECK-LABEL: func.func @main
// CHECK:       graph.softmax
// CHECK:       graph.matmul
// CHECK:       graph.matmul
// CHECK:       graph.matmul
func.func @main(%x: tensor<4x8xf64> {graph.name = "x"}, %w: tensor<8x3xf64>)
    -> (tensor<4x3xf64> {graph.name = "y"}) {
  %0 = graph.matmul %x, %w : (tensor<4x8xf64>, tensor<8x3xf64>) -> tensor<4x3xf64>
  %1 = graph.softmax %0 {axis = 1 : i64} : (tensor<4x3xf64>) -> tensor<4x3xf64>
  return %1 : tensor<4x3xf64>
}

// -----

// Nor does a convolution of a function end them.
// CHECK-LABEL: func.func @main
// CHECK-COUNT-4: graph.conv
func.func @main(%x: tensor<1x2x6x6xf64> {graph.name = "x"}, %w: tensor<3x2x3x3xf64>)
    -> (tensor<1x3x4x4xf64> {graph.name = "y"}) {
  %0 = graph.mul %x, %x : (tensor<1x2x6x6xf64>, tensor<1x2x6x6xf64>) -> tensor<1x2x6x6xf64>
  %1 = graph.conv %0, %w {filters = 3 : i64, groups = 1 : i64, window = array<i64: 3, 3>, strides = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>}
    : (tensor<1x2x6x6xf64>, tensor<3x2x3x3xf64>) -> tensor<1x3x4x4xf64>
  %2 = graph.mul %1, %1 : (tensor<1x3x4x4xf64>, tensor<1x3x4x4xf64>) -> tensor<1x3x4x4xf64>
  return %2 : tensor<1x3x4x4xf64>
}
