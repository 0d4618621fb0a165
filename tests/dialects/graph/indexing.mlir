// RUN: tcc-opt %s --split-input-file --verify-diagnostics | FileCheck %s
// Indices take the place of the axis; scatter keeps the type of x.

// CHECK-LABEL: func @types
func.func @types(%x: tensor<5x7xf32>, %i: tensor<2x3xi64>, %u: tensor<2x7xf32>,
                 %n: tensor<2x1xi64>) -> (tensor<2x3x7xf32>, tensor<5x7xf32>) {
  // CHECK: graph.gather {{.*}} -> tensor<2x3x7xf32>
  %0 = graph.gather %x, %i {axis = 0 : i64}
    : (tensor<5x7xf32>, tensor<2x3xi64>) -> tensor<2x3x7xf32>
  // CHECK: graph.scatter_nd {{.*}} -> tensor<5x7xf32>
  %1 = graph.scatter_nd %x, %n, %u {kind = #graph<scatter_kind<add>>}
    : (tensor<5x7xf32>, tensor<2x1xi64>, tensor<2x7xf32>) -> tensor<5x7xf32>
  // CHECK: graph.top_k {{.*}} -> (tensor<5x2xf32>, tensor<5x2xi64>)
  %2:2 = graph.top_k %x {k = 2 : i64, axis = 1 : i64}
    : (tensor<5x7xf32>) -> (tensor<5x2xf32>, tensor<5x2xi64>)
  return %0, %1 : tensor<2x3x7xf32>, tensor<5x7xf32>
}

// -----

func.func @axis(%x: tensor<5x7xf32>, %i: tensor<2xi64>) {
  // expected-error@+2 {{failed to infer returned types}}
  // expected-error@+1 {{axis 2 is out of range for rank 2}}
  %0 = graph.gather %x, %i {axis = 2 : i64}
    : (tensor<5x7xf32>, tensor<2xi64>) -> tensor<5x2xf32>
  return
}
