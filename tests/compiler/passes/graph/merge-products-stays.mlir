// RUN: tcc-opt %s --tcc-merge-products | FileCheck %s

// Two activations that part, each in its product's kernel, would be kernels.
// CHECK-LABEL: func @different_activations
// CHECK-COUNT-2: graph.matmul {{.*}} -> tensor<2x4xf32>
func.func @different_activations(%x: tensor<2x8xf32>)
    -> (tensor<2x4xf32>, tensor<2x4xf32>) {
  %v = graph.weight "v" : tensor<8x4xf32>
  %w = graph.weight "w" : tensor<8x4xf32>
  %0 = graph.matmul %x, %v : (tensor<2x8xf32>, tensor<8x4xf32>) -> tensor<2x4xf32>
  %1 = graph.matmul %x, %w : (tensor<2x8xf32>, tensor<8x4xf32>) -> tensor<2x4xf32>
  %2 = graph.relu %0 : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %3 = graph.tanh %1 : (tensor<2x4xf32>) -> tensor<2x4xf32>
  return %2, %3 : tensor<2x4xf32>, tensor<2x4xf32>
}

// A gate and what it gates meet in one kernel: as many as before.
// CHECK-LABEL: func @gate
// CHECK:         graph.matmul {{.*}} -> tensor<2x8xf32>
// CHECK-NOT:     graph.matmul
func.func @gate(%x: tensor<2x8xf32>) -> tensor<2x4xf32> {
  %v = graph.weight "v" : tensor<8x4xf32>
  %w = graph.weight "w" : tensor<8x4xf32>
  %0 = graph.matmul %x, %v : (tensor<2x8xf32>, tensor<8x4xf32>) -> tensor<2x4xf32>
  %1 = graph.matmul %x, %w : (tensor<2x8xf32>, tensor<8x4xf32>) -> tensor<2x4xf32>
  %2 = graph.silu %0 : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %3 = graph.mul %2, %1
    : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  return %3 : tensor<2x4xf32>
}

// Results of the function would be copied.
// CHECK-LABEL: func @results
// CHECK-COUNT-2: graph.matmul {{.*}} -> tensor<2x4xf32>
func.func @results(%x: tensor<2x8xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>) {
  %v = graph.weight "v" : tensor<8x4xf32>
  %w = graph.weight "w" : tensor<8x4xf32>
  %0 = graph.matmul %x, %v : (tensor<2x8xf32>, tensor<8x4xf32>) -> tensor<2x4xf32>
  %1 = graph.matmul %x, %w : (tensor<2x8xf32>, tensor<8x4xf32>) -> tensor<2x4xf32>
  return %0, %1 : tensor<2x4xf32>, tensor<2x4xf32>
}

// A weight that is an embedding too would be stored twice.
// CHECK-LABEL: func @tied
// CHECK-COUNT-2: graph.matmul {{.*}} -> tensor<2x4xf32>
func.func @tied(%x: tensor<2x8xf32>, %i: tensor<2xi64>)
    -> (tensor<4x2xf32>, tensor<4x2xf32>, tensor<2x4xf32>) {
  %v = graph.weight "v" : tensor<8x4xf32>
  %w = graph.weight "w" : tensor<8x4xf32>
  %0 = graph.matmul %x, %v : (tensor<2x8xf32>, tensor<8x4xf32>) -> tensor<2x4xf32>
  %1 = graph.matmul %x, %w : (tensor<2x8xf32>, tensor<8x4xf32>) -> tensor<2x4xf32>
  %2 = graph.transpose %0 [1, 0] : (tensor<2x4xf32>) -> tensor<4x2xf32>
  %3 = graph.transpose %1 [1, 0] : (tensor<2x4xf32>) -> tensor<4x2xf32>
  %4 = graph.gather %w, %i {axis = 0}
    : (tensor<8x4xf32>, tensor<2xi64>) -> tensor<2x4xf32>
  return %2, %3, %4 : tensor<4x2xf32>, tensor<4x2xf32>, tensor<2x4xf32>
}

// What is trained changes in each step.
// CHECK-LABEL: func @arguments
// CHECK-COUNT-2: graph.matmul {{.*}} -> tensor<2x4xf32>
func.func @arguments(%x: tensor<2x8xf32>, %v: tensor<8x4xf32>,
                     %w: tensor<8x4xf32>) -> (tensor<4x2xf32>, tensor<4x2xf32>) {
  %0 = graph.matmul %x, %v : (tensor<2x8xf32>, tensor<8x4xf32>) -> tensor<2x4xf32>
  %1 = graph.matmul %x, %w : (tensor<2x8xf32>, tensor<8x4xf32>) -> tensor<2x4xf32>
  %2 = graph.transpose %0 [1, 0] : (tensor<2x4xf32>) -> tensor<4x2xf32>
  %3 = graph.transpose %1 [1, 0] : (tensor<2x4xf32>) -> tensor<4x2xf32>
  return %2, %3 : tensor<4x2xf32>, tensor<4x2xf32>
}
