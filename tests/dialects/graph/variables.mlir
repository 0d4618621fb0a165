// RUN: tcc-opt %s --split-input-file --verify-diagnostics | FileCheck %s
// Functions read and write the variables that the module lists.

// CHECK: graph.variables = [#graph.variable<"w", parameter, tensor<2xf32>>,
// CHECK-SAME: #graph.variable<"exp_avg/w", slot, tensor<2xf32> of "w">]
module attributes {graph.variables = [
    #graph.variable<"w", parameter, tensor<2xf32>>,
    #graph.variable<"exp_avg/w", slot, tensor<2xf32> of "w">]} {
  // CHECK: func @step(%{{.*}}: tensor<2xf32> {graph.variable = "w"})
  // CHECK-SAME: -> (tensor<2xf32> {graph.variable = "exp_avg/w"})
  func.func @step(%w: tensor<2xf32> {graph.variable = "w"})
      -> (tensor<2xf32> {graph.variable = "exp_avg/w"}) {
    return %w : tensor<2xf32>
  }
}

// -----

// CHECK: #graph.variable<"w", parameter, tensor<2xf32> slice <[4] from [2]>>
// CHECK-SAME: #graph.variable<"step/fault", step, tensor<i64> field fault>
// CHECK-SAME: setting <key = "p", range = <min = 0.000000e+00 : f64, max =
// CHECK-SAME: opensAtMax = true>, words = ["none"], initial = dense<5.0
module attributes {graph.variables = [
    #graph.variable<"w", parameter, tensor<2xf32> slice <[4] from [2]>>,
    #graph.variable<"step/fault", step, tensor<i64> field fault>,
    #graph.variable<"set/p", setting, tensor<f64> setting <key = "p",
      range = <min = 0.0 : f64, max = 1.0 : f64, opensAtMin = false,
               opensAtMax = true>, words = ["none"],
      initial = dense<0.5> : tensor<f64>>>]} {
}

// -----

// expected-error@+1 {{variable "w" is no part of what it is a slice of}}
module attributes {graph.variables = [
    #graph.variable<"w", parameter, tensor<2xf32> slice <[4] from [3]>>]} {
}

// -----

// expected-error@+1 {{setting "p" begins as 'tensor<f32>'}}
module attributes {graph.variables = [
    #graph.variable<"set/p", setting, tensor<f64> setting <key = "p",
      words = ["none"], initial = dense<0.0> : tensor<f32>>>]} {
}

// -----

// expected-error@+1 {{has two variables "w"}}
module attributes {graph.variables = [
    #graph.variable<"w", parameter, tensor<2xf32>>,
    #graph.variable<"w", buffer, tensor<f32>>]} {
}

// -----

module attributes {graph.variables = [
    #graph.variable<"w", parameter, tensor<2xf32>>]} {
  // expected-error@+1 {{the module has no variable "v"}}
  func.func @step(%w: tensor<2xf32> {graph.variable = "v"}) {
    return
  }
}

// -----

module attributes {graph.variables = [
    #graph.variable<"w", parameter, tensor<2xf32>>]} {
  // expected-error@+1 {{variable "w" is 'tensor<2xf32>', not 'tensor<3xf32>'}}
  func.func @step(%w: tensor<3xf32>)
      -> (tensor<3xf32> {graph.variable = "w"}) {
    return %w : tensor<3xf32>
  }
}

// -----

// expected-error@+1 {{variable "w" has no room for itself, or an odd one}}
module attributes {graph.variables = [
    #graph.variable<"w", parameter, tensor<17xf32> bucket 0 : i64 room 64 : i64>]} {
}

// -----

// expected-error@+1 {{variable "m" does not hold its pieces}}
module attributes {graph.ranks = 2 : i64, graph.variables = [
    #graph.variable<"m", slot, tensor<16xf32> pieces [
      #graph.piece<"m/w", tensor<4x4xf32> of "w" at 0>,
      #graph.piece<"m/v", tensor<17xf32> of "v" at 16>]>]} {
}

// -----

// Pieces of what no number of ranks divides.
// expected-error@+1 {{variable "m" does not hold its pieces}}
module attributes {graph.variables = [
    #graph.variable<"m", slot, tensor<16xf32> pieces [
      #graph.piece<"m/w", tensor<4x4xf32> of "w" at 0>]>]} {
}
