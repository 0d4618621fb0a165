// RUN: tcc-opt %s --split-input-file --verify-diagnostics | FileCheck %s
// Functions read and write the variables that the module lists.

// CHECK: graph.variables = [#graph.variable<"w", parameter, tensor<2xf32>, "">,
// CHECK-SAME: #graph.variable<"exp_avg/w", slot, tensor<2xf32>, "w">]
module attributes {graph.variables = [
    #graph.variable<"w", parameter, tensor<2xf32>, "">,
    #graph.variable<"exp_avg/w", slot, tensor<2xf32>, "w">]} {
  // CHECK: func @step(%{{.*}}: tensor<2xf32> {graph.variable = "w"})
  // CHECK-SAME: -> (tensor<2xf32> {graph.variable = "exp_avg/w"})
  func.func @step(%w: tensor<2xf32> {graph.variable = "w"})
      -> (tensor<2xf32> {graph.variable = "exp_avg/w"}) {
    return %w : tensor<2xf32>
  }
}

// -----

// expected-error@+1 {{has two variables "w"}}
module attributes {graph.variables = [
    #graph.variable<"w", parameter, tensor<2xf32>, "">,
    #graph.variable<"w", buffer, tensor<f32>, "">]} {
}

// -----

module attributes {graph.variables = [
    #graph.variable<"w", parameter, tensor<2xf32>, "">]} {
  // expected-error@+1 {{the module has no variable "v"}}
  func.func @step(%w: tensor<2xf32> {graph.variable = "v"}) {
    return
  }
}

// -----

module attributes {graph.variables = [
    #graph.variable<"w", parameter, tensor<2xf32>, "">]} {
  // expected-error@+1 {{variable "w" is 'tensor<2xf32>', not 'tensor<3xf32>'}}
  func.func @step(%w: tensor<3xf32>)
      -> (tensor<3xf32> {graph.variable = "w"}) {
    return %w : tensor<3xf32>
  }
}
