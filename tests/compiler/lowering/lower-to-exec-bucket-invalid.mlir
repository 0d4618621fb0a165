// RUN: tcc-opt %s --tcc-lower-to-exec --split-input-file --verify-diagnostics
// A bucket is summed as a whole and once, and its old values are not used then.


module attributes {graph.variables = [
    #graph.variable<"a", gradient, tensor<4xf32> bucket 0 : i64>,
    #graph.variable<"b", gradient, tensor<4xf32> bucket 0 : i64>]} {
  func.func @part(%x: tensor<4xf32>) -> (tensor<4xf32> {graph.variable = "a"}) {
    // expected-error @+1 {{expected the variables of one bucket, in its order}}
    %0 = graph.all_reduce %x into ["a"] : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}

// -----

module attributes {graph.variables = [#graph.variable<"a", gradient, tensor<4xf32>>]} {
  func.func @alone(%x: tensor<4xf32>) -> (tensor<4xf32> {graph.variable = "a"}) {
    // expected-error @+1 {{variable "a" is in no bucket}}
    %0 = graph.all_reduce %x into ["a"] : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}

// -----

module attributes {graph.variables = [
    #graph.variable<"a", gradient, tensor<4xf32> bucket 0 : i64>]} {
  func.func @late(%x: tensor<4xf32>, %a: tensor<4xf32> {graph.variable = "a"})
      -> (tensor<4xf32>, tensor<4xf32> {graph.variable = "a"}) {
    // expected-error @+1 {{the old value of "a" is used later}}
    %0 = graph.all_reduce %x into ["a"] : tensor<4xf32>
    %1 = graph.fused <pointwise> (%a) : (tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%b: tensor<4xf32>):
      %c = graph.neg %b : (tensor<4xf32>) -> tensor<4xf32>
      graph.yield %c : tensor<4xf32>
    }
    return %1, %0 : tensor<4xf32>, tensor<4xf32>
  }
}

// -----

module attributes {graph.variables = [
    #graph.variable<"a", gradient, tensor<4xf32> bucket 0 : i64>]} {
  func.func @stays(%x: tensor<4xf32>) -> tensor<4xf32> {
    // expected-error @+1 {{leaves what it makes in "a"}}
    %0 = graph.all_reduce %x into ["a"] : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}

// -----

module attributes {graph.variables = [
    #graph.variable<"a", gradient, tensor<4xf32> bucket 0 : i64>]} {
  func.func @twice(%x: tensor<4xf32>) -> (tensor<4xf32> {graph.variable = "a"}) {
    %0 = graph.all_reduce %x into ["a"] : tensor<4xf32>
    // expected-error @+1 {{changes a bucket for a second time}}
    %1 = graph.all_reduce %0 into ["a"] : tensor<4xf32>
    return %1 : tensor<4xf32>
  }
}

// -----

module attributes {graph.variables = [
    #graph.variable<"a", gradient, tensor<4xf32> bucket 0 : i64>,
    #graph.variable<"b", gradient, tensor<4xf32> bucket 0 : i64>]} {
  func.func @swap(%a: tensor<4xf32> {graph.variable = "a"},
                  %b: tensor<4xf32> {graph.variable = "b"})
      -> (tensor<4xf32> {graph.variable = "a"}, tensor<4xf32> {graph.variable = "b"}) {
    // expected-error @+1 {{the old value of "a" is used later}}
    %0:2 = graph.all_reduce %b, %a into ["a", "b"] : tensor<4xf32>, tensor<4xf32>
    return %0#0, %0#1 : tensor<4xf32>, tensor<4xf32>
  }
}
