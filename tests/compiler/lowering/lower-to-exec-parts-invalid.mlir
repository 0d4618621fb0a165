// RUN: tcc-opt %s --tcc-lower-to-exec --split-input-file --verify-diagnostics

module attributes {graph.ranks = 2 : i64, graph.variables = [
    #graph.variable<"a", parameter, tensor<4xf32> bucket 0 : i64 room 128 : i64>]} {
  func.func @uneven(%a: tensor<4xf32> {graph.variable = "a"}) -> tensor<12xf32> {
    // expected-error @+1 {{has a part of 48 bytes of a bucket of 128, which 2 ranks divide}}
    %0 = graph.part %a of ["a"] : (tensor<4xf32>) -> tensor<12xf32>
    return %0 : tensor<12xf32>
  }
}

// -----

module attributes {graph.ranks = 2 : i64, graph.variables = [
    #graph.variable<"a", parameter, tensor<4xf32> bucket 0 : i64 room 128 : i64>]} {
  func.func @computed(%x: tensor<4xf32>)
      -> tensor<16xf32> {
    // expected-error @+1 {{expected the value that the function was given of "a", or a sum that lies there}}
    %0 = graph.part %x of ["a"] : (tensor<4xf32>) -> tensor<16xf32>
    return %0 : tensor<16xf32>
  }
}

// -----

module attributes {graph.ranks = 2 : i64, graph.variables = [
    #graph.variable<"a", parameter, tensor<4xf32> bucket 0 : i64 room 128 : i64>,
    #graph.variable<"b", parameter, tensor<4xf32> bucket 1 : i64 room 256 : i64>]} {
  func.func @numbers(%a: tensor<4xf32> {graph.variable = "a"},
                     %b: tensor<4xf32> {graph.variable = "b"})
      -> (tensor<16xf32>, tensor<16xf32>) {
    %0 = graph.part %a of ["a"] : (tensor<4xf32>) -> tensor<16xf32>
    // expected-error @+1 {{has a part of 64 bytes of a bucket of 256, which 2 ranks divide}}
    %1 = graph.part %b of ["b"] : (tensor<4xf32>) -> tensor<16xf32>
    return %0, %1 : tensor<16xf32>, tensor<16xf32>
  }
}

// -----

// What is gathered goes over values that are still read.
module attributes {graph.ranks = 2 : i64, graph.variables = [
    #graph.variable<"a", parameter, tensor<4xf32> bucket 0 : i64 room 128 : i64>]} {
  func.func @late(%x: tensor<16xf32>, %a: tensor<4xf32> {graph.variable = "a"})
      -> (tensor<4xf32>, tensor<4xf32> {graph.variable = "a"}) {
    // expected-error @+1 {{the old value of "a" is used later}}
    %0 = graph.all_gather %x into ["a"] : (tensor<16xf32>) -> tensor<4xf32>
    return %a, %0 : tensor<4xf32>, tensor<4xf32>
  }
}
