// RUN: tcc-opt %s --tcc-lower-to-exec --tcc-update-variables | FileCheck %s
// A rank adds up gradients, gets the sums of its part, updates its part of the
// parameters and clears the gradients where all of these lie: nothing is copied.

// CHECK-LABEL: exec.entry @step
// CHECK-DAG:     %[[W:.+]] = exec.buffer variable 0
// CHECK-DAG:     %[[G:.+]] = exec.buffer variable 1
// CHECK-DAG:     %[[OWNW:.+]] = exec.view %[[W]] at #[[PART:[a-z0-9]+]]
// CHECK-DAG:     %[[OWNG:.+]] = exec.view %[[G]] at #[[PART]]
// CHECK-NOT:     exec.copy
// CHECK:         exec.start_reduce_scatter %[[G]] to %[[OWNG]]
// CHECK-NOT:     exec.copy
// CHECK:         exec.launch @{{.*}} ins(%[[OWNW]], %[[OWNG]]) outs(%[[OWNW]])
// CHECK:         exec.start_all_gather %[[OWNW]] to %[[W]]
// CHECK-NOT:     exec.copy
module attributes {graph.ranks = 2 : i64, graph.variables = [
    #graph.variable<"w", parameter, tensor<20xf32> bucket 1 : i64 room 128 : i64>,
    #graph.variable<"g", gradient, tensor<20xf32> of "w" bucket 0 : i64 room 128 : i64>]} {
  func.func @step(%x: tensor<20xf32>, %w: tensor<20xf32> {graph.variable = "w"},
                  %g: tensor<20xf32> {graph.variable = "g"})
      -> (tensor<20xf32> {graph.variable = "w"}, tensor<20xf32> {graph.variable = "g"}) {
    %0 = graph.fused <pointwise> (%x, %g) : (tensor<20xf32>, tensor<20xf32>) -> tensor<20xf32> {
    ^bb0(%a: tensor<20xf32>, %b: tensor<20xf32>):
      %c = graph.add %a, %b : (tensor<20xf32>, tensor<20xf32>) -> tensor<20xf32>
      graph.yield %c : tensor<20xf32>
    }
    %1 = graph.reduce_scatter %0 into ["g"]
        : (tensor<20xf32>) -> tensor<16xf32>
    %2 = graph.part %w of ["w"] : (tensor<20xf32>) -> tensor<16xf32>
    %3 = graph.fused <pointwise> (%2, %1) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32> {
    ^bb0(%a: tensor<16xf32>, %b: tensor<16xf32>):
      %c = graph.sub %a, %b : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
      graph.yield %c : tensor<16xf32>
    }
    %4 = graph.all_gather %3 into ["w"]
        : (tensor<16xf32>) -> tensor<20xf32>
    %5 = graph.fused <pointwise> () : () -> tensor<20xf32> {
      %d = graph.constant dense<0.0> : tensor<20xf32>
      graph.yield %d : tensor<20xf32>
    }
    return %4, %5 : tensor<20xf32>, tensor<20xf32>
  }
}
