// RUN: tcc-opt %s --split-input-file --verify-diagnostics | FileCheck %s
// Movement keeps the number of elements where it must, in symbols too.

#x = affine_map<()[s0] -> (s0, 4, 3)>
#flat = affine_map<()[s0] -> (s0, 12)>

module attributes {graph.symbols = [#graph.symbol<"batch", 1 to 8 by 1>]} {
  // CHECK-LABEL: func @symbolic
  func.func @symbolic(%x: tensor<?x4x3xf32, #x>) -> tensor<?x12xf32, #flat> {
    // CHECK: graph.reshape
    %0 = graph.reshape %x : (tensor<?x4x3xf32, #x>) -> tensor<?x12xf32, #flat>
    return %0 : tensor<?x12xf32, #flat>
  }
}

// -----

// CHECK-LABEL: func @types
func.func @types(%x: tensor<2x3xf32>) -> tensor<2x3x8xf32> {
  // CHECK: graph.transpose %{{.*}} [1, 0]
  %0 = graph.transpose %x [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
  // CHECK: graph.slice {{.*}}steps = array<i64: 1, -1>
  %1 = graph.slice %0 {starts = affine_map<() -> (0, 1)>, steps = array<i64: 1, -1>}
    : (tensor<3x2xf32>) -> tensor<3x1xf32>
  // CHECK: graph.broadcast {{.*}} -> tensor<2x3x8xf32>
  %2 = graph.broadcast %1 : (tensor<3x1xf32>) -> tensor<2x3x8xf32>
  return %2 : tensor<2x3x8xf32>
}

// -----

func.func @elements(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{elements}}
  %0 = graph.reshape %x : (tensor<2x3xf32>) -> tensor<5xf32>
  return
}

// -----

func.func @not_one(%x: tensor<3x2xf32>) {
  // expected-error@+1 {{'graph.broadcast' op}}
  %0 = graph.broadcast %x : (tensor<3x2xf32>) -> tensor<3x8xf32>
  return
}
