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
  // expected-error @+1 {{gives 'tensor<1xf32>' for 'tensor<4xf32>'}}
  %z = graph.if %c : (tensor<i1>) -> tensor<4xf32> {
    graph.yield %p : tensor<1xf32>
  } else {
    graph.yield %q : tensor<4xf32>
  }
  return %z : tensor<4xf32>
}

// -----

module attributes {graph.symbols = [#graph.symbol<"n", 0 to 8 by 1 computed>]} {
  func.func @main(%t: tensor<i64>, %x: tensor<1xf32>, %y: tensor<2xf32>) {
    // expected-error @+1 {{sets symbol 0 to two sizes}}
    %z:2 = graph.loop trips %t : tensor<i64>
        inits %x, %y : tensor<1xf32>, tensor<2xf32>
        -> tensor<?xf32, affine_map<()[s0] -> (s0)>>,
           tensor<?xf32, affine_map<()[s0] -> (s0)>> {
    ^bb0(%i: tensor<i64>, %a: tensor<?xf32, affine_map<()[s0] -> (s0)>>,
         %b: tensor<?xf32, affine_map<()[s0] -> (s0)>>):
      %more = graph.constant dense<true> : tensor<i1>
      graph.yield %more, %a, %b : tensor<i1>,
        tensor<?xf32, affine_map<()[s0] -> (s0)>>,
        tensor<?xf32, affine_map<()[s0] -> (s0)>>
    }
    return
  }
}

// -----

module attributes {graph.symbols = [#graph.symbol<"n", 0 to 8 by 1 computed>]} {
  func.func @main(%t: tensor<i64>, %x: tensor<1xf32>) {
    // expected-error @+1 {{gives 'tensor<2xf32>' for 'tensor<1xf32>'}}
    %z = graph.loop trips %t : tensor<i64> inits %x : tensor<1xf32>
        -> tensor<1xf32> {
    ^bb0(%i: tensor<i64>, %a: tensor<1xf32>):
      %more = graph.constant dense<true> : tensor<i1>
      %b = graph.concat %a, %a {axis = 0 : i64}
        : (tensor<1xf32>, tensor<1xf32>) -> tensor<2xf32>
      graph.yield %more, %b : tensor<i1>, tensor<2xf32>
    }
    return
  }
}
