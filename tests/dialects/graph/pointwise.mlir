// RUN: tcc-opt %s --split-input-file --verify-diagnostics | FileCheck %s
// Operands have one type; comparison gives booleans, a cast what it says.

// CHECK-LABEL: func @types
func.func @types(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xi32> {
  // CHECK: %[[C:.+]] = graph.compare <lt> {{.*}} -> tensor<4xi1>
  %c = graph.compare <lt> %x, %y : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  // CHECK: %[[S:.+]] = graph.select %[[C]], %{{.*}} -> tensor<4xf32>
  %s = graph.select %c, %x, %y
    : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // CHECK: graph.cast %[[S]] : {{.*}} -> tensor<4xi32>
  %r = graph.cast %s : (tensor<4xf32>) -> tensor<4xi32>
  return %r : tensor<4xi32>
}

// CHECK-LABEL: func @functions
func.func @functions(%x: tensor<4xf16>) -> tensor<4xf16> {
  // CHECK: graph.mish %{{.*}} : (tensor<4xf16>) -> tensor<4xf16>
  %y = graph.mish %x : (tensor<4xf16>) -> tensor<4xf16>
  return %y : tensor<4xf16>
}

// -----

func.func @integers(%x: tensor<4xi32>) {
  // expected-error@+1 {{floating-point}}
  %0 = graph.mish %x : (tensor<4xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @no_broadcast(%x: tensor<4xf32>, %y: tensor<1xf32>) {
  // expected-error@+1 {{same type}}
  %0 = graph.add %x, %y : (tensor<4xf32>, tensor<1xf32>) -> tensor<4xf32>
  return
}
