// RUN: tcc-opt %s --split-input-file --verify-diagnostics '--tcc-differentiate=of=y wrt=x'

#n = affine_map<()[s0] -> (s0)>
#m = affine_map<()[s0] -> (s0 + 1)>
#k = affine_map<()[s0] -> (s0 + 2)>

// All ops without a derivative are named.
func.func @main(%x: tensor<?xf32, #n> {graph.name = "x"}) -> (tensor<?xf32, #k> {graph.name = "y"}) {
  %zero = graph.constant dense<0.0> : tensor<f32>
  // expected-error @+1 {{of a symbolic extent has no derivative}}
  %0 = graph.pad %x, %zero {mode = #graph<pad_mode<reflect>>,
    low = array<i64: 1>, high = array<i64: 0>, interior = array<i64: 0>}
    : (tensor<?xf32, #n>, tensor<f32>) -> tensor<?xf32, #m>
  // expected-error @+1 {{of a symbolic extent has no derivative}}
  %1 = graph.pad %0, %zero {mode = #graph<pad_mode<reflect>>,
    low = array<i64: 1>, high = array<i64: 0>, interior = array<i64: 0>}
    : (tensor<?xf32, #m>, tensor<f32>) -> tensor<?xf32, #k>
  return %1 : tensor<?xf32, #k>
}

// -----

// A loop that stops on a condition has no known number of iterations.
func.func @main(%x: tensor<4xf32> {graph.name = "x"}, %n: tensor<i64>) -> (tensor<4xf32> {graph.name = "y"}) {
  // expected-error @+1 {{whose number of iterations is neither known at compile time nor has a small bound has no derivative}}
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

// -----

// What a branch runs again is what its gradient needs, but ranks run the
// collectives of both.
func.func @main(%c: tensor<i1> {graph.name = "c"}, %x: tensor<4xf32> {graph.name = "x"})
    -> (tensor<4xf32> {graph.name = "y"}) {
  // expected-error @+1 {{with a collective in a branch has no derivative}}
  %0 = graph.if %c : (tensor<i1>) -> tensor<4xf32> {
    %1 = graph.all_reduce %x : tensor<4xf32>
    %2 = graph.exp %1 : (tensor<4xf32>) -> tensor<4xf32>
    graph.yield %2 : tensor<4xf32>
  } else {
    %1 = graph.all_reduce %x : tensor<4xf32>
    graph.yield %1 : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}
