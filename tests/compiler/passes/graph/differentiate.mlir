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

// -----

// Slices gathered at constant indices: the gradient of each is the sum over the places
// that read it, here none of 0, two of 1 and one of 2.
// CHECK-LABEL: func.func @main
// CHECK-SAME:  (%[[X:.*]]: tensor<2x3x5xf32>
// CHECK-DAG:   %[[FIRST:.*]] = graph.constant dense<[0, 0, 1]> : tensor<3xi64>
// CHECK-DAG:   %[[SECOND:.*]] = graph.constant dense<[0, 2, 0]> : tensor<3xi64>
// CHECK-DAG:   %[[HAS_FIRST:.*]] = graph.constant dense<[false, true, true]>
// CHECK-DAG:   %[[HAS_SECOND:.*]] = graph.constant dense<[false, true, false]>
// CHECK:       %[[ONE:.*]] = graph.gather %[[DY:.*]], %[[FIRST]] {axis = 1 : i64, nonnegative}
// CHECK:       %[[FLAGS:.*]] = graph.reshape %[[HAS_FIRST]]
// CHECK:       %[[WHERE:.*]] = graph.broadcast %[[FLAGS]]
// CHECK:       %[[TERM:.*]] = graph.select %[[WHERE]], %[[ONE]]
// CHECK:       graph.gather %[[DY]], %[[SECOND]] {axis = 1 : i64, nonnegative}
// CHECK:       %[[SUM:.*]] = graph.add %[[TERM]],
// CHECK:       return %{{.*}}, %[[SUM]]
func.func @main(%x: tensor<2x3x5xf32> {graph.name = "x"},
                %w: tensor<2xf32> {graph.name = "w"})
    -> (tensor<2x3x5xf32> {graph.name = "loss"}) {
  %0 = graph.constant dense<[1, -1, 1]> : tensor<3xi64>
  %1 = graph.gather %x, %0 {axis = 1 : i64} : (tensor<2x3x5xf32>, tensor<3xi64>) -> tensor<2x3x5xf32>
  %2 = graph.tanh %1 : (tensor<2x3x5xf32>) -> tensor<2x3x5xf32>
  return %2 : tensor<2x3x5xf32>
}

// -----

// Where most terms of that sum would be empty the slices are scattered: four indices
// of six read one slice.
// CHECK-LABEL: func.func @main
// CHECK-NOT:   graph.gather {{.*}}nonnegative
// CHECK:       graph.scatter_nd
func.func @main(%x: tensor<9x5xf32> {graph.name = "x"},
                %w: tensor<2xf32> {graph.name = "w"})
    -> (tensor<6x5xf32> {graph.name = "loss"}) {
  %0 = graph.constant dense<[8, 1, 1, 1, 1, 7]> : tensor<6xi64>
  %1 = graph.gather %x, %0 {axis = 0 : i64} : (tensor<9x5xf32>, tensor<6xi64>) -> tensor<6x5xf32>
  %2 = graph.tanh %1 : (tensor<6x5xf32>) -> tensor<6x5xf32>
  return %2 : tensor<6x5xf32>
}
