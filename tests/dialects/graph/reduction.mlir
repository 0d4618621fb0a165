// RUN: tcc-opt %s --split-input-file --verify-diagnostics | FileCheck %s
// A reduction drops its axes, an argument's index is i64, a scan keeps the type.

// CHECK-LABEL: func @types
func.func @types(%x: tensor<4x8x2xf32>)
    -> (tensor<8xf32>, tensor<4x2xi64>, tensor<4x8x2xf32>) {
  // CHECK: graph.reduce <max> %{{.*}} [0, 2] : {{.*}} -> tensor<8xf32>
  %0 = graph.reduce <max> %x [0, 2] : (tensor<4x8x2xf32>) -> tensor<8xf32>
  // CHECK: graph.arg_reduce <min> %{{.*}} {axis = 1 : i64}
  %1 = graph.arg_reduce <min> %x {axis = 1 : i64}
    : (tensor<4x8x2xf32>) -> tensor<4x2xi64>
  // CHECK: graph.cumulative <sum> %{{.*}} {axis = 1 : i64, reverse}
  %2 = graph.cumulative <sum> %x {axis = 1 : i64, reverse}
    : (tensor<4x8x2xf32>) -> tensor<4x8x2xf32>
  return %0, %1, %2 : tensor<8xf32>, tensor<4x2xi64>, tensor<4x8x2xf32>
}

// -----

func.func @wrong_result(%x: tensor<4x8xf32>) {
  // expected-error@+2 {{failed to infer returned types}}
  // expected-error@+1 {{incompatible}}
  %0 = graph.reduce <sum> %x [1] : (tensor<4x8xf32>) -> tensor<8xf32>
  return
}
