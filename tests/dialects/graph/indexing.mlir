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

// How many are found or chosen, types say.
// CHECK-LABEL: func @choice
func.func @choice(%m: tensor<9xi1>, %b: tensor<1x4x8xf32>, %s: tensor<1x2x8xf32>,
                  %c: tensor<1x2x8xi1>, %n: tensor<i64>, %t: tensor<f32>) {
  // CHECK: graph.find {{.*}} -> tensor<4xi64>
  %0 = graph.find %m : (tensor<9xi1>) -> tensor<4xi64>
  // CHECK: graph.choose_boxes {{.*}} -> tensor<1x2x3xi64>
  %1 = graph.choose_boxes %b, %s, %c, %n, %t
    : (tensor<1x4x8xf32>, tensor<1x2x8xf32>, tensor<1x2x8xi1>, tensor<i64>, tensor<f32>)
    -> tensor<1x2x3xi64>
  return
}

// -----

func.func @vector(%m: tensor<9x1xi1>) {
  // expected-error@+1 {{expected vectors of i1 and i64, found 'tensor<9x1xi1>' and 'tensor<4xi64>'}}
  %0 = graph.find %m : (tensor<9x1xi1>) -> tensor<4xi64>
  return
}

// -----

func.func @boxes(%b: tensor<1x8x4xf32>, %s: tensor<1x2x8xf32>,
                 %c: tensor<1x2x8xi1>, %n: tensor<i64>, %t: tensor<f32>) {
  // expected-error@+1 {{expected [batch, 4, box] and [batch, class, box], found}}
  %0 = graph.choose_boxes %b, %s, %c, %n, %t
    : (tensor<1x8x4xf32>, tensor<1x2x8xf32>, tensor<1x2x8xi1>, tensor<i64>, tensor<f32>)
    -> tensor<1x2x3xi64>
  return
}

// -----

func.func @axis(%x: tensor<5x7xf32>, %i: tensor<2xi64>) {
  // expected-error@+2 {{failed to infer returned types}}
  // expected-error@+1 {{axis 2 is out of range for rank 2}}
  %0 = graph.gather %x, %i {axis = 2 : i64}
    : (tensor<5x7xf32>, tensor<2xi64>) -> tensor<5x2xf32>
  return
}
