// RUN: tcc-opt %s --split-input-file --verify-diagnostics '--tcc-differentiate=of=y wrt=x'

// All ops without a derivative are named.
func.func @main(%x: tensor<4xf32> {graph.name = "x"}) -> (tensor<4xf32> {graph.name = "y"}) {
  // expected-error @+1 {{of kind prod has no derivative}}
  %0 = graph.cumulative <prod> %x {axis = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  // expected-error @+1 {{of kind prod has no derivative}}
  %1 = graph.cumulative <prod> %0 {axis = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

// A loop that stops on a condition has no known number of iterations.
func.func @main(%x: tensor<4xf32> {graph.name = "x"}, %n: tensor<i64>) -> (tensor<4xf32> {graph.name = "y"}) {
  // expected-error @+1 {{whose number of iterations is not known at compile time has no derivative}}
  %0 = graph.loop trips %n : tensor<i64> inits %x : tensor<4xf32> -> tensor<4xf32> {
  ^bb0(%i: tensor<i64>, %carried: tensor<4xf32>):
    %on = graph.constant dense<true> : tensor<i1>
    %1 = graph.sin %carried : (tensor<4xf32>) -> tensor<4xf32>
    graph.yield %on, %1 : tensor<i1>, tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

// expected-error @+1 {{input 'x' holds i64, expected floats}}
module {
  func.func @main(%x: tensor<4xi64> {graph.name = "x"}) -> (tensor<4xf32> {graph.name = "y"}) {
    %0 = graph.cast %x : (tensor<4xi64>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
