// RUN: tcc-opt %s --split-input-file --verify-diagnostics | FileCheck %s
// Batches may be the constant 1 or absent on one side; panels hide n.

// CHECK-LABEL: func @batches
func.func @batches(%a: tensor<6x4x8xf32>, %b: tensor<8x5xf32>) -> tensor<6x4x5xf32> {
  // CHECK: graph.matmul {{.*}} -> tensor<6x4x5xf32>
  %0 = graph.matmul %a, %b : (tensor<6x4x8xf32>, tensor<8x5xf32>) -> tensor<6x4x5xf32>
  return %0 : tensor<6x4x5xf32>
}

// CHECK-LABEL: func @packed
func.func @packed(%a: tensor<4x8xf32>, %b: tensor<2x8x64xf32>) -> tensor<4x80xf32> {
  // CHECK: graph.matmul {{.*}} {packed_rhs}
  %0 = graph.matmul %a, %b {packed_rhs}
    : (tensor<4x8xf32>, tensor<2x8x64xf32>) -> tensor<4x80xf32>
  return %0 : tensor<4x80xf32>
}

// CHECK-LABEL: func @packed_narrow
func.func @packed_narrow(%a: tensor<4x8xf32>, %b: tensor<1x8x32xf32>) -> tensor<4x20xf32> {
  // CHECK: graph.matmul {{.*}} {packed_rhs}
  %0 = graph.matmul %a, %b {packed_rhs}
    : (tensor<4x8xf32>, tensor<1x8x32xf32>) -> tensor<4x20xf32>
  return %0 : tensor<4x20xf32>
}

// -----

func.func @packed_too_wide(%a: tensor<4x8xf32>, %b: tensor<1x8x64xf32>) -> tensor<4x20xf32> {
  // expected-error @+1 {{rhs does not have the columns of the result}}
  %0 = graph.matmul %a, %b {packed_rhs}
    : (tensor<4x8xf32>, tensor<1x8x64xf32>) -> tensor<4x20xf32>
  return %0 : tensor<4x20xf32>
}

// -----

func.func @depth(%a: tensor<4x8xf32>, %b: tensor<7x5xf32>) {
  // expected-error@+1 {{differ in their common extent}}
  %0 = graph.matmul %a, %b : (tensor<4x8xf32>, tensor<7x5xf32>) -> tensor<4x5xf32>
  return
}
