// RUN: tcc-opt %s --tcc-lower-to-exec --tcc-update-variables \
// RUN:   --split-input-file | FileCheck %s

// A launch that can work in place writes the variable; what is returned beside
// it is read from there.
// CHECK-LABEL: exec.kernel @k0
// CHECK:         in_place = [array<i64: 0, 1>]
// CHECK-LABEL: exec.entry @step
// CHECK:         %[[W:.+]] = exec.buffer variable 0
// CHECK:         exec.launch @k0{{.*}} ins(%{{.+}}, %[[W]]) outs(%[[W]])
// CHECK-NEXT:    exec.launch @k1{{.*}} ins(%[[W]]) outs(%{{.+}})
// CHECK-NOT:     exec.copy
module attributes {graph.variables = [
    #graph.variable<"w", parameter, tensor<4xf32>>]} {
  func.func @step(%g: tensor<4xf32>, %w: tensor<4xf32> {graph.variable = "w"})
      -> (tensor<4xf32>, tensor<4xf32> {graph.variable = "w"}) {
    %0 = graph.fused <pointwise> (%g, %w)
        : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>):
      %c = graph.sub %b, %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      graph.yield %c : tensor<4xf32>
    }
    %1 = graph.fused <pointwise> (%0) : (tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%a: tensor<4xf32>):
      %b = graph.neg %a : (tensor<4xf32>) -> tensor<4xf32>
      graph.yield %b : tensor<4xf32>
    }
    return %1, %0 : tensor<4xf32>, tensor<4xf32>
  }
}

// -----

// What is read after its update, or read at other places by the launch that
// computes it, is stored at the end.
// CHECK-LABEL: exec.entry @step
// CHECK-DAG:     %[[W:.+]] = exec.buffer variable 0
// CHECK-DAG:     %[[V:.+]] = exec.buffer variable 1
// CHECK:         exec.launch @k0{{.*}} ins(%[[W]]) outs(%[[W1:[0-9]+]])
// CHECK:         exec.launch @k1{{.*}} ins(%[[W]]) outs(%{{.+}})
// CHECK:         exec.launch @k2{{.*}} ins(%[[V]]) outs(%[[V1:[0-9]+]])
// CHECK-DAG:     exec.copy %[[W1]] to %[[W]]
// CHECK-DAG:     exec.copy %[[V1]] to %[[V]]
module attributes {graph.variables = [
    #graph.variable<"w", parameter, tensor<3x3xf32>>,
    #graph.variable<"v", parameter, tensor<3x3xf32>>]} {
  func.func @step(%w: tensor<3x3xf32> {graph.variable = "w"},
                  %v: tensor<3x3xf32> {graph.variable = "v"})
      -> (tensor<3x3xf32>, tensor<3x3xf32> {graph.variable = "w"},
          tensor<3x3xf32> {graph.variable = "v"}) {
    %0 = graph.fused <pointwise> (%w) : (tensor<3x3xf32>) -> tensor<3x3xf32> {
    ^bb0(%a: tensor<3x3xf32>):
      %b = graph.neg %a : (tensor<3x3xf32>) -> tensor<3x3xf32>
      graph.yield %b : tensor<3x3xf32>
    }
    %1 = graph.fused <pointwise> (%w) : (tensor<3x3xf32>) -> tensor<3x3xf32> {
    ^bb0(%a: tensor<3x3xf32>):
      %b = graph.exp %a : (tensor<3x3xf32>) -> tensor<3x3xf32>
      graph.yield %b : tensor<3x3xf32>
    }
    %2 = graph.fused <pointwise> (%v) : (tensor<3x3xf32>) -> tensor<3x3xf32> {
    ^bb0(%a: tensor<3x3xf32>):
      %b = graph.transpose %a [1, 0] : (tensor<3x3xf32>) -> tensor<3x3xf32>
      graph.yield %b : tensor<3x3xf32>
    }
    return %1, %0, %2 : tensor<3x3xf32>, tensor<3x3xf32>, tensor<3x3xf32>
  }
}

// -----

// Variables that change places: the second copy would read what the first has
// written.
// CHECK-LABEL: exec.entry @swap
// CHECK:         %[[A:.+]] = exec.buffer variable 0
// CHECK-NEXT:    %[[B:.+]] = exec.buffer variable 1
// CHECK:         exec.copy %[[A]] to %[[OLD:.+]] bytes
// CHECK-NEXT:    exec.copy %[[B]] to %[[A]]
// CHECK-NEXT:    exec.copy %[[OLD]] to %[[B]]
module attributes {graph.variables = [
    #graph.variable<"a", step, tensor<4xf32>>,
    #graph.variable<"b", step, tensor<4xf32>>]} {
  func.func @swap(%a: tensor<4xf32> {graph.variable = "a"},
                  %b: tensor<4xf32> {graph.variable = "b"})
      -> (tensor<4xf32> {graph.variable = "b"},
          tensor<4xf32> {graph.variable = "a"}) {
    return %a, %b : tensor<4xf32>, tensor<4xf32>
  }
}
