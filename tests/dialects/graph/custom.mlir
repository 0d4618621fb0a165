// RUN: tcc-opt %s --split-input-file --verify-diagnostics | FileCheck %s
// RUN: tcc-opt %s --split-input-file --verify-diagnostics --tcc-decompose --canonicalize | FileCheck %s --check-prefix=PARTS
// An operator of a plugin has a body, a gradient, kernels, or some of them.

// CHECK-LABEL: func @body
// PARTS-LABEL: func @body
func.func @body(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: graph.custom "mine::twice"(%arg0) : {{.*}} body {
  // CHECK: graph.add
  // CHECK: } gradient {
  // PARTS-NOT: graph.custom
  // PARTS: graph.add %arg0, %arg0
  // PARTS-NOT: graph.mul
  %0 = graph.custom "mine::twice"(%x) : (tensor<4xf32>) -> tensor<4xf32> body {
  ^bb0(%a: tensor<4xf32>):
    %b = graph.add %a, %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    graph.yield %b : tensor<4xf32>
  } gradient {
  ^bb0(%a: tensor<4xf32>, %y: tensor<4xf32>, %dy: tensor<4xf32>):
    %b = graph.mul %y, %dy : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    graph.yield %b : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

// A kernel for the target is all that stays.
// CHECK-LABEL: func @kernel
// PARTS-LABEL: func @kernel
func.func @kernel(%x: tensor<4xf32>) -> tensor<4xf32> {
  // PARTS: graph.custom "mine::twice"
  // PARTS-NOT: body
  %0 = graph.custom "mine::twice"(%x) {kernels = [#graph.custom_kernel<
      target = "cpu", symbol = "twice", sizes = affine_map<() -> (4)>,
      tasks = affine_map<() -> (1)>, scratch = affine_map<() -> (0)>,
      threads = 0, codes = []>]} : (tensor<4xf32>) -> tensor<4xf32> body {
  ^bb0(%a: tensor<4xf32>):
    %b = graph.add %a, %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    graph.yield %b : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

func.func @other_results(%x: tensor<4xf32>) -> tensor<2xf32> {
  // expected-error @below {{body does not take its inputs and yield its results}}
  %0 = graph.custom "mine::twice"(%x) : (tensor<4xf32>) -> tensor<2xf32> body {
  ^bb0(%a: tensor<4xf32>):
    graph.yield %a : tensor<4xf32>
  }
  return %0 : tensor<2xf32>
}

// -----

func.func @other_gradient(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{gradient does not take inputs, results and their gradients and yield those of the inputs}}
  %0 = graph.custom "mine::twice"(%x) : (tensor<4xf32>) -> tensor<4xf32> gradient {
  ^bb0(%a: tensor<4xf32>):
    graph.yield %a : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

func.func @no_kernel(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{expected kernels, found [1]}}
  %0 = graph.custom "mine::twice"(%x) {kernels = [1]}
    : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
