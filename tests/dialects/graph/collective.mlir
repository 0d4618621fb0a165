// RUN: tcc-opt %s --split-input-file --verify-diagnostics | FileCheck %s
// RUN: tcc-opt %s --split-input-file --verify-diagnostics --tcc-simplify \
// RUN:   | FileCheck %s --check-prefix=SIMPLE
// The sum over ranks keeps its operand's type, and is nobody's to compute at
// compile time: ranks are not known.

// CHECK-LABEL: func @main
// SIMPLE-LABEL: func @main
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK: graph.all_reduce %{{.*}} : tensor<4xf32>
  %0 = graph.all_reduce %x : tensor<4xf32>
  %ones = graph.constant dense<1.0> : tensor<4xf32>
  // CHECK: graph.all_reduce %{{.*}} {group = 2 : i64} : tensor<4xf32>
  // SIMPLE: graph.all_reduce %{{.*}} {group = 2 : i64}
  %1 = graph.all_reduce %ones {group = 2 : i64} : tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// -----

func.func @types(%x: tensor<4xf32>) {
  // expected-error @+1 {{requires the same type for all operands and results}}
  %0 = "graph.all_reduce"(%x) : (tensor<4xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @group(%x: tensor<4xf32>) {
  // expected-error @+1 {{attribute 'group' failed to satisfy constraint: 64-bit signless integer attribute whose value is non-negative}}
  %0 = graph.all_reduce %x {group = -1 : i64} : tensor<4xf32>
  return
}
