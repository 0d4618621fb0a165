// RUN: tcc-opt %s "--tcc-mix-precision=keep=relu,product" 2>&1 | FileCheck %s

// A glob that names no product in any function keeps nothing, and is said.
// CHECK: warning: no product is kept in f32 for 'relu'

// CHECK-LABEL: func @other
// CHECK:         graph.matmul {{.*}}bf16
func.func @other(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %r = graph.relu %x : (tensor<8x8xf32>) -> tensor<8x8xf32> loc("relu")
  %y = graph.matmul %r, %r
    : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("other")
  return %y : tensor<8x8xf32>
}

// CHECK-LABEL: func @named
// CHECK-NOT:     bf16
func.func @named(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %y = graph.matmul %x, %x
    : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("product")
  return %y : tensor<8x8xf32>
}
