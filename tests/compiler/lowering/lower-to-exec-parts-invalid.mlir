// RUN: tcc-opt %s --tcc-lower-to-exec --split-input-file --verify-diagnostics

module attributes {graph.ranks = 2 : i64, graph.variables = [
    #graph.variable<"a", parameter, tensor<4xf32> bucket 0 : i64 room 128 : i64>,
    #graph.variable<"rank", step, tensor<i64> field rank>]} {
  func.func @uneven(%a: tensor<4xf32> {graph.variable = "a"},
                    %rank: tensor<i64> {graph.variable = "rank"}) -> tensor<12xf32> {
    // expected-error @+1 {{has parts of 48 bytes of a bucket of 128}}
    %0 = graph.part %a of ["a"] at %rank : (tensor<4xf32>, tensor<i64>) -> tensor<12xf32>
    return %0 : tensor<12xf32>
  }
}

// -----

module attributes {graph.ranks = 2 : i64, graph.variables = [
    #graph.variable<"a", parameter, tensor<4xf32> bucket 0 : i64 room 128 : i64>,
    #graph.variable<"rank", step, tensor<i64> field rank>]} {
  func.func @computed(%x: tensor<4xf32>, %rank: tensor<i64> {graph.variable = "rank"})
      -> tensor<16xf32> {
    // expected-error @+1 {{expected the value that the function was given of "a"}}
    %0 = graph.part %x of ["a"] at %rank : (tensor<4xf32>, tensor<i64>) -> tensor<16xf32>
    return %0 : tensor<16xf32>
  }
}

// -----

module attributes {graph.ranks = 2 : i64, graph.variables = [
    #graph.variable<"a", parameter, tensor<4xf32> bucket 0 : i64 room 128 : i64>,
    #graph.variable<"b", parameter, tensor<4xf32> bucket 1 : i64 room 256 : i64>,
    #graph.variable<"rank", step, tensor<i64> field rank>]} {
  func.func @numbers(%a: tensor<4xf32> {graph.variable = "a"},
                     %b: tensor<4xf32> {graph.variable = "b"},
                     %rank: tensor<i64> {graph.variable = "rank"})
      -> (tensor<16xf32>, tensor<16xf32>) {
    %0 = graph.part %a of ["a"] at %rank : (tensor<4xf32>, tensor<i64>) -> tensor<16xf32>
    // expected-error @+1 {{divides a bucket among 4 ranks, another one is divided among 2}}
    %1 = graph.part %b of ["b"] at %rank : (tensor<4xf32>, tensor<i64>) -> tensor<16xf32>
    return %0, %1 : tensor<16xf32>, tensor<16xf32>
  }
}

// -----

// What is gathered goes over values that are still read.
module attributes {graph.ranks = 2 : i64, graph.variables = [
    #graph.variable<"a", parameter, tensor<4xf32> bucket 0 : i64 room 128 : i64>,
    #graph.variable<"rank", step, tensor<i64> field rank>]} {
  func.func @late(%x: tensor<16xf32>, %a: tensor<4xf32> {graph.variable = "a"},
                  %rank: tensor<i64> {graph.variable = "rank"})
      -> (tensor<4xf32>, tensor<4xf32> {graph.variable = "a"}) {
    // expected-error @+1 {{the old value of "a" is used later}}
    %0 = graph.all_gather %x into ["a"] at %rank : (tensor<16xf32>, tensor<i64>) -> tensor<4xf32>
    return %a, %0 : tensor<4xf32>, tensor<4xf32>
  }
}
