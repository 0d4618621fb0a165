// RUN: tcc-opt %s --split-input-file --verify-diagnostics | FileCheck %s
// Scale and shift have the extents that are normalised over.

// CHECK-LABEL: func @types
func.func @types(%x: tensor<4x8xf32>, %s: tensor<8xf32>) -> tensor<4x8xf32> {
  // CHECK: graph.softmax %{{.*}} {axis = 1 : i64}
  %0 = graph.softmax %x {axis = 1 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: graph.layer_norm %{{.*}} scale %{{.*}} shift %{{.*}}
  %1 = graph.layer_norm %0 scale %s : tensor<8xf32> shift %s : tensor<8xf32>
    {axis = 1 : i64, epsilon = 1.0e-05 : f64} : tensor<4x8xf32> -> tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}

// -----

func.func @axis(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{axis 2 is out of range for rank 2}}
  %0 = graph.softmax %x {axis = 2 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}
