// RUN: tcc-opt %s --tcc-lower-to-exec --tcc-update-variables \
// RUN:   --split-input-file | FileCheck %s
// Gradients are accumulated, summed over ranks, read and cleared where they lie:
// nothing is copied.

// CHECK-LABEL: exec.kernel @k0
// CHECK:         in_place = [array<i64: 0, 1>]
// CHECK-LABEL: exec.kernel @k1
// CHECK:         in_place = [array<i64: 0, 0>, array<i64: 1, 1>]
// CHECK-LABEL: exec.entry @step
// CHECK:         %[[ALL:.+]] = exec.buffer variable 1
// CHECK:         %[[G:.+]] = exec.view %[[ALL]]
// CHECK-NOT:     exec.copy
// CHECK:         exec.launch @k0{{.*}} ins(%{{.+}}, %[[G]]) outs(%[[G]])
// CHECK-NEXT:    %[[T:.+]] = exec.start_all_reduce %[[ALL]] to %[[ALL]]
// CHECK-NEXT:    exec.wait %[[T]]
// CHECK-NEXT:    exec.launch @k1{{.*}} ins(%[[W:.+]], %[[G]]) outs(%[[W]], %[[G]])
// CHECK-NOT:     exec.copy
module attributes {graph.variables = [
    #graph.variable<"w", parameter, tensor<4xf32>>,
    #graph.variable<"g", gradient, tensor<4xf32> bucket 0 : i64>]} {
  func.func @step(%x: tensor<4xf32>, %w: tensor<4xf32> {graph.variable = "w"},
                  %g: tensor<4xf32> {graph.variable = "g"})
      -> (tensor<4xf32> {graph.variable = "w"}, tensor<4xf32> {graph.variable = "g"}) {
    %0 = graph.fused <pointwise> (%x, %g) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>):
      %c = graph.add %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      graph.yield %c : tensor<4xf32>
    }
    %1 = graph.all_reduce %0 into ["g"] : tensor<4xf32>
    %2:2 = graph.fused <pointwise> (%w, %1)
        : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>):
      %c = graph.sub %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %d = graph.constant dense<0.0> : tensor<4xf32>
      graph.yield %c, %d : tensor<4xf32>, tensor<4xf32>
    }
    return %2#0, %2#1 : tensor<4xf32>, tensor<4xf32>
  }
}

// -----

// One value for two variables lies in the first, and is copied to the second.
// CHECK-LABEL: exec.entry @both
// CHECK:         exec.launch @k0{{.*}} outs(%[[A:.+]]) node
// CHECK-NEXT:    exec.copy %[[A]] to %{{.+}} bytes
// CHECK-NEXT:    exec.start_all_reduce
module attributes {graph.variables = [
    #graph.variable<"a", gradient, tensor<4xf32> bucket 0 : i64>,
    #graph.variable<"b", gradient, tensor<4xf32> bucket 0 : i64>]} {
  func.func @both(%x: tensor<4xf32>)
      -> (tensor<4xf32> {graph.variable = "a"}, tensor<4xf32> {graph.variable = "b"}) {
    %0 = graph.fused <pointwise> (%x) : (tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%a: tensor<4xf32>):
      %c = graph.neg %a : (tensor<4xf32>) -> tensor<4xf32>
      graph.yield %c : tensor<4xf32>
    }
    %1:2 = graph.all_reduce %0, %0 into ["a", "b"] : tensor<4xf32>, tensor<4xf32>
    return %1#0, %1#1 : tensor<4xf32>, tensor<4xf32>
  }
}
