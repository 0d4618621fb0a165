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
  // CHECK: graph.all_reduce %{{.*}} {group = 2 : i64, tree} : tensor<4xf32>
  // SIMPLE: graph.all_reduce %{{.*}} {group = 2 : i64, tree}
  %1 = graph.all_reduce %ones {group = 2 : i64, tree} : tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// Several tensors, whose sums may be wanted in variables.
// CHECK-LABEL: func @bucket
// SIMPLE-LABEL: func @bucket
func.func @bucket(%x: tensor<4xf32>, %y: tensor<2x3xf32>) -> (tensor<4xf32>, tensor<2x3xf32>) {
  // CHECK: graph.all_reduce %{{.*}}, %{{.*}} into ["a", "b"] : tensor<4xf32>, tensor<2x3xf32>
  // SIMPLE: graph.all_reduce
  %0:2 = graph.all_reduce %x, %y into ["a", "b"] : tensor<4xf32>, tensor<2x3xf32>
  return %0#0, %0#1 : tensor<4xf32>, tensor<2x3xf32>
}

// -----

func.func @names(%x: tensor<4xf32>, %y: tensor<4xf32>) {
  // expected-error @+1 {{of 2 tensors goes into 1 variables}}
  %0:2 = graph.all_reduce %x, %y into ["a"] : tensor<4xf32>, tensor<4xf32>
  return
}

// -----

func.func @elements(%x: tensor<4xf32>, %y: tensor<4xf64>) {
  // expected-error @+1 {{has elements of 'f32' and 'f64'}}
  %0:2 = graph.all_reduce %x, %y into ["a", "b"] : tensor<4xf32>, tensor<4xf64>
  return
}

// -----

func.func @types(%x: tensor<4xf32>) {
  // expected-error @+2 {{'graph.all_reduce' op failed to infer returned types}}
  // expected-error @+1 {{inferred type(s) 'tensor<4xf32>' are incompatible}}
  %0 = "graph.all_reduce"(%x) : (tensor<4xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @group(%x: tensor<4xf32>) {
  // expected-error @+1 {{attribute 'group' failed to satisfy constraint: 64-bit signless integer attribute whose value is non-negative}}
  %0 = graph.all_reduce %x {group = -1 : i64} : tensor<4xf32>
  return
}

// -----

// A rank's part of a bucket: its sums, its old values, and what all make of it.
// CHECK-LABEL: func @parts
func.func @parts(%x: tensor<4xf32>, %y: tensor<2x3xf32>) -> tensor<4xf32> {
  // CHECK: graph.reduce_scatter %{{.*}}, %{{.*}} into ["g/a", "g/b"] : (tensor<4xf32>, tensor<2x3xf32>) -> tensor<16xf32>
  %0 = graph.reduce_scatter %x, %y into ["g/a", "g/b"]
      : (tensor<4xf32>, tensor<2x3xf32>) -> tensor<16xf32>
  // CHECK: graph.part %{{.*}}, %{{.*}} of ["a", "b"] : (tensor<4xf32>, tensor<2x3xf32>) -> tensor<16xf32>
  %1 = graph.part %x, %y of ["a", "b"]
      : (tensor<4xf32>, tensor<2x3xf32>) -> tensor<16xf32>
  %2 = graph.sub %1, %0 : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  // CHECK: graph.all_gather %{{.*}} into ["a", "b"] : (tensor<16xf32>) -> (tensor<4xf32>, tensor<2x3xf32>)
  %3:2 = graph.all_gather %2 into ["a", "b"]
      : (tensor<16xf32>) -> (tensor<4xf32>, tensor<2x3xf32>)
  return %3#0 : tensor<4xf32>
}

// -----

func.func @part_names(%x: tensor<4xf32>) {
  // expected-error @+1 {{of 1 tensors names 2 variables}}
  %0 = graph.part %x of ["a", "b"] : (tensor<4xf32>) -> tensor<16xf32>
  return
}

// -----

func.func @part_elements(%x: tensor<4xf32>) {
  // expected-error @+1 {{has elements of 'f64' and 'f32'}}
  %0 = graph.reduce_scatter %x into ["a"]
      : (tensor<4xf32>) -> tensor<16xf64>
  return
}
