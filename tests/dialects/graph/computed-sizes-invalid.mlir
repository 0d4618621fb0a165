// RUN: tcc-opt %s --split-input-file --verify-diagnostics

module attributes {graph.symbols = [#graph.symbol<"n", 0 to 8 by 1 computed>]} {
  func.func @main(%a: tensor<i64>) -> tensor<i64> {
    // expected-error @+1 {{uses symbol 0, which is not set here}}
    %n = graph.size affine_map<()[s0] -> (s0)>
    graph.read_size %a to affine_map<()[s0] -> (s0)> {what = "n"} : tensor<i64>
    return %n : tensor<i64>
  }
}

// -----

module attributes {graph.symbols = [#graph.symbol<"n", 0 to 8 by 1>]} {
  func.func @main(%a: tensor<i64>) {
    // expected-error @+1 {{expected a computed symbol, found}}
    graph.read_size %a to affine_map<()[s0] -> (s0)> {what = "n"} : tensor<i64>
    return
  }
}

// -----

module attributes {graph.symbols = [#graph.symbol<"n", 0 to 8 by 1 computed>]} {
  func.func @main(%a: tensor<2xi64>) {
    // expected-error @+1 {{expected one integer, found 'tensor<2xi64>'}}
    graph.read_size %a to affine_map<()[s0] -> (s0)> {what = "n"} : tensor<2xi64>
    return
  }
}

// -----

// expected-error @+1 {{has a computed symbol before one of the inputs}}
module attributes {graph.symbols = [#graph.symbol<"n", 0 to 8 by 1 computed>,
                                    #graph.symbol<"m", 1 to 8 by 1>]} {
}

// -----

func.func @main(%c: tensor<i1>, %p: tensor<1xf32>, %q: tensor<4xf32>)
    -> tensor<4xf32> {
  // expected-error @+1 {{has extents that its branches do not yield}}
  %z = graph.if %c : (tensor<i1>) -> tensor<4xf32> {
    graph.yield %p : tensor<1xf32>
  } else {
    graph.yield %q : tensor<4xf32>
  }
  return %z : tensor<4xf32>
}
