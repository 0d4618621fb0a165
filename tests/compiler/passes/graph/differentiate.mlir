// RUN: tcc-opt %s --split-input-file '--tcc-differentiate=of=loss wrt=x,w' --canonicalize --cse | FileCheck %s

// Reverse mode: the gradients are further results.
// CHECK-LABEL: func.func @main
// CHECK-SAME:  (%[[X:.*]]: tensor<4x8xf32> {{.*}}, %[[W:.*]]: tensor<8x3xf32>
// CHECK-SAME:  tensor<4x8xf32> {graph.name = "d(loss)/d(x)"}
// CHECK-SAME:  tensor<8x3xf32> {graph.name = "d(loss)/d(w)"}
// CHECK:       %[[Y:.*]] = graph.tanh
// CHECK:       %[[SQUARE:.*]] = graph.mul %[[Y]], %[[Y]]
// CHECK:       %[[SLOPE:.*]] = graph.sub %{{.*}}, %[[SQUARE]]
// CHECK:       %[[DY:.*]] = graph.mul %{{.*}}, %[[SLOPE]]
// CHECK:       %[[DX:.*]] = graph.matmul %[[DY]], %[[W]] {transpose_rhs}
// CHECK:       %[[DW:.*]] = graph.matmul %[[X]], %[[DY]] {transpose_lhs}
// CHECK:       return %{{.*}}, %[[DX]], %[[DW]]
func.func @main(%x: tensor<4x8xf32> {graph.name = "x"},
                %w: tensor<8x3xf32> {graph.name = "w"})
    -> (tensor<f32> {graph.name = "loss"}) {
  %0 = graph.matmul %x, %w : (tensor<4x8xf32>, tensor<8x3xf32>) -> tensor<4x3xf32>
  %1 = graph.tanh %0 : (tensor<4x3xf32>) -> tensor<4x3xf32>
  %2 = graph.reduce <sum> %1 [0, 1] : (tensor<4x3xf32>) -> tensor<f32>
  return %2 : tensor<f32>
}

// -----

// Attention has an op for the gradient of each operand; one off the path stays as it
// is. What the result does not depend on has a gradient of zeros.
// CHECK-LABEL: func.func @main
// CHECK-SAME:  (%[[X:.*]]: tensor<1x16x4xf32> {{.*}}%[[OTHER:.*]]: tensor<1x16x4xf32> {{.*}})
// CHECK:       graph.attention %[[OTHER]]
// CHECK:       %[[Y:.*]] = graph.attention %[[X]]
// CHECK:       %[[N:.*]] = graph.attention_normalizer %[[X]], %[[OTHER]]
// CHECK:       %[[SUM:.*]] = graph.reduce <sum>
// CHECK:       %[[SHARE:.*]] = graph.reshape %[[SUM]]
// CHECK:       graph.attention_gradient <query> %[[X]], %[[OTHER]], %[[OTHER]], %{{.*}}, %[[N]], %[[SHARE]]
// CHECK-NOT:   graph.attention_gradient
// CHECK:       %[[ZEROS:.*]] = graph.broadcast %{{.*}} : (tensor<f32>) -> tensor<2xf32>
// CHECK:       return %{{.*}}, %{{.*}}, %{{.*}}, %[[ZEROS]]
func.func @main(%x: tensor<1x16x4xf32> {graph.name = "x"},
                %w: tensor<2xf32> {graph.name = "w"},
                %other: tensor<1x16x4xf32> {graph.name = "other"})
    -> (tensor<1x16x4xf32> {graph.name = "loss"}, tensor<1x16x4xf32> {graph.name = "off"}) {
  %0 = graph.attention %other, %other, %other {scale = 0.5 : f64}
    : (tensor<1x16x4xf32>, tensor<1x16x4xf32>, tensor<1x16x4xf32>) -> tensor<1x16x4xf32>
  %1 = graph.attention %x, %other, %other {scale = 0.5 : f64}
    : (tensor<1x16x4xf32>, tensor<1x16x4xf32>, tensor<1x16x4xf32>) -> tensor<1x16x4xf32>
  return %1, %0 : tensor<1x16x4xf32>, tensor<1x16x4xf32>
}

// -----

// A value that two ops read gets the sum of both gradients.
// CHECK-LABEL: func.func @main
// CHECK-SAME:  (%[[X:.*]]: tensor<4xf32>
// CHECK:       %[[PART:.*]] = graph.mul %{{[0-9]+}}, %[[X]]
// CHECK:       %[[BOTH:.*]] = graph.add %[[PART]], %[[PART]]
// CHECK:       return %{{.*}}, %[[BOTH]]
func.func @main(%x: tensor<4xf32> {graph.name = "x"},
                %w: tensor<2xf32> {graph.name = "w"}) -> (tensor<4xf32> {graph.name = "loss"}) {
  %0 = graph.mul %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
