// RUN: tcc-opt %s --tcc-lower-to-exec --split-input-file | FileCheck %s
// Of gradients each rank gets the sums of its part, updates the parameters of it
// where they lie, and all gather them. Which part it is follows from its number, which
// a size slot has.

// CHECK-DAG:   #[[PART:.+]] = affine_map<()[s0] -> (s0 * 64)>
// CHECK-DAG:   #[[COUNT:.+]] = affine_map<() -> (16)>
// CHECK-LABEL: exec.entry @step
// CHECK-SAME:      rank_slot = 0 : i64, slots = 1 : i64
// CHECK-DAG:     %[[W:.+]] = exec.buffer variable 0
// CHECK-DAG:     %[[G:.+]] = exec.buffer variable 2
// CHECK-DAG:     %[[OWNW:.+]] = exec.view %[[W]] at #[[PART]]
// CHECK-DAG:     %[[OWNG:.+]] = exec.view %[[G]] at #[[PART]]
// CHECK:         %[[T:.+]] = exec.start_reduce_scatter %[[G]] to %[[OWNG]] as f32 count #[[COUNT]]
// CHECK-NEXT:    exec.wait %[[T]]
// CHECK:         exec.launch @{{.*}} ins(%[[OWNW]], %[[OWNG]]) outs(%[[NEXT:.+]]) node
// CHECK:         exec.copy %[[NEXT]] to %[[OWNW]]
// CHECK:         %[[A:.+]] = exec.start_all_gather %[[OWNW]] to %[[W]] as f32 count #[[COUNT]]
// CHECK-NEXT:    exec.wait %[[A]]
module attributes {graph.ranks = 2 : i64, graph.variables = [
    #graph.variable<"w", parameter, tensor<4xf32> bucket 1 : i64>,
    #graph.variable<"v", parameter, tensor<3xf32> bucket 1 : i64 room 64 : i64>,
    #graph.variable<"gradient/w", gradient, tensor<4xf32> of "w" bucket 0 : i64>,
    #graph.variable<"gradient/v", gradient, tensor<3xf32> of "v" bucket 0 : i64 room 64 : i64>]} {
  func.func @step(%x: tensor<4xf32>, %y: tensor<3xf32>,
                  %w: tensor<4xf32> {graph.variable = "w"},
                  %v: tensor<3xf32> {graph.variable = "v"})
      -> (tensor<4xf32> {graph.variable = "w"}, tensor<3xf32> {graph.variable = "v"},
          tensor<4xf32> {graph.variable = "gradient/w"},
          tensor<3xf32> {graph.variable = "gradient/v"}) {
    %0 = graph.reduce_scatter %x, %y into ["gradient/w", "gradient/v"]
        : (tensor<4xf32>, tensor<3xf32>) -> tensor<16xf32>
    %1 = graph.part %w, %v of ["w", "v"]
        : (tensor<4xf32>, tensor<3xf32>) -> tensor<16xf32>
    %2 = graph.fused <pointwise> (%1, %0) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32> {
    ^bb0(%a: tensor<16xf32>, %b: tensor<16xf32>):
      %c = graph.sub %a, %b : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
      graph.yield %c : tensor<16xf32>
    }
    %3:2 = graph.all_gather %2 into ["w", "v"]
        : (tensor<16xf32>) -> (tensor<4xf32>, tensor<3xf32>)
    %4:2 = graph.fused <pointwise> () : () -> (tensor<4xf32>, tensor<3xf32>) {
      %c = graph.constant dense<0.0> : tensor<4xf32>
      %d = graph.constant dense<0.0> : tensor<3xf32>
      graph.yield %c, %d : tensor<4xf32>, tensor<3xf32>
    }
    return %3#0, %3#1, %4#0, %4#1
        : tensor<4xf32>, tensor<3xf32>, tensor<4xf32>, tensor<3xf32>
  }
}

// -----

// Of sums that all ranks have each takes its part where they lie.

// CHECK:       #[[HALF:.+]] = affine_map<()[s0] -> (s0 * 64)>
// CHECK-LABEL: exec.entry @sums
// CHECK-DAG:     %[[G:.+]] = exec.buffer variable 0
// CHECK-DAG:     %[[OWN:.+]] = exec.view %[[G]] at #[[HALF]]
// CHECK:         exec.start_all_reduce %[[G]] to %[[G]]
// CHECK:         exec.launch @{{.*}} ins(%[[OWN]])
module attributes {graph.ranks = 2 : i64, graph.variables = [
    #graph.variable<"g", gradient, tensor<20xf32> of "w" bucket 0 : i64 room 128 : i64>]} {
  func.func @sums(%g: tensor<20xf32> {graph.variable = "g"})
      -> (tensor<16xf32>, tensor<20xf32> {graph.variable = "g"}) {
    %0 = graph.all_reduce %g into ["g"] {tree} : tensor<20xf32>
    %1 = graph.part %0 of ["g"] : (tensor<20xf32>) -> tensor<16xf32>
    %2:2 = graph.fused <pointwise> (%1) : (tensor<16xf32>) -> (tensor<16xf32>, tensor<20xf32>) {
    ^bb0(%a: tensor<16xf32>):
      %b = graph.neg %a : (tensor<16xf32>) -> tensor<16xf32>
      %c = graph.constant dense<0.0> : tensor<20xf32>
      graph.yield %b, %c : tensor<16xf32>, tensor<20xf32>
    }
    return %2#0, %2#1 : tensor<16xf32>, tensor<20xf32>
  }
}
