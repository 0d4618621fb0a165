// RUN: tcc-opt %s --tcc-widen-floats --tcc-simplify | FileCheck %s

// All ops compute in f64; arguments, weights and results stay as they are.
// CHECK-LABEL: func @all
// CHECK-SAME:    (%[[X:.+]]: tensor<4x8xf32>, %{{.+}}: tensor<4xi64>) -> tensor<4x8xf32>
// CHECK-DAG:     graph.cast %[[X]] : {{.*}} -> tensor<4x8xf64>
// CHECK-DAG:     %[[W:.+]] = graph.weight "w" : tensor<8x8xf32>
// CHECK-DAG:     graph.cast %[[W]] : {{.*}} -> tensor<8x8xf64>
// CHECK:         graph.matmul {{.*}} -> tensor<4x8xf64>
// CHECK:         graph.layer_norm
// CHECK-SAME:      -> tensor<4x8xf64>
// CHECK:         %[[Y:.+]] = graph.cast %{{.+}} : {{.*}} -> tensor<4x8xf32>
// CHECK:         return %[[Y]]
func.func @all(%x: tensor<4x8xf32>, %i: tensor<4xi64>) -> tensor<4x8xf32> {
  %w = graph.weight "w" : tensor<8x8xf32>
  %y = graph.matmul %x, %w
    : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %f = graph.cast %i : (tensor<4xi64>) -> tensor<4xf32>
  %c = graph.reshape %f : (tensor<4xf32>) -> tensor<4x1xf32>
  %b = graph.broadcast %c : (tensor<4x1xf32>) -> tensor<4x8xf32>
  %s = graph.add %y, %b : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %n = graph.layer_norm %s {axis = 1 : i64, epsilon = 1.0e-5 : f64}
    : tensor<4x8xf32> -> tensor<4x8xf32>
  return %n : tensor<4x8xf32>
}

// CHECK-LABEL: func @branch
// CHECK:         graph.if {{.*}} -> tensor<4xf64>
// CHECK:           graph.exp {{.*}} -> tensor<4xf64>
func.func @branch(%c: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %y = graph.if %c : (tensor<i1>) -> tensor<4xf32> {
    %e = graph.exp %x : (tensor<4xf32>) -> tensor<4xf32>
    graph.yield %e : tensor<4xf32>
  } else {
    graph.yield %x : tensor<4xf32>
  }
  return %y : tensor<4xf32>
}
