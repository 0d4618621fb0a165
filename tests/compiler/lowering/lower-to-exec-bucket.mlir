// RUN: tcc-opt %s --tcc-lower-to-exec | FileCheck %s
// What ranks sum together lies in one buffer: gradients are copied to their parts
// of it, summed there, and read from there.

// CHECK:       #[[COUNT:.+]] = affine_map<() -> (19)>
// CHECK-LABEL: exec.entry @step
// CHECK:         %[[ALL:.+]] = exec.buffer variable 1
// CHECK-DAG:     %[[A:.+]] = exec.view %[[ALL]] at {{.*}}
// CHECK-DAG:     %[[B:.+]] = exec.view %[[ALL]] at {{.*}}
// CHECK:         exec.launch @k0{{.*}} outs(%[[X:.+]], %[[Y:.+]]) node
// CHECK:         exec.copy %[[X]] to %[[PX:.+]] bytes
// CHECK:         exec.copy %[[Y]] to %[[PY:.+]] bytes
// 16 elements of the first with what lies behind it, and 3 of the second.
// CHECK:         %[[T:.+]] = exec.start_all_reduce %[[ALL]] to %[[ALL]] as f32 count #[[COUNT]]
// CHECK-NEXT:    exec.wait %[[T]]
// CHECK:         exec.launch @k1{{.*}} ins(%{{.+}}, %[[PX]]) outs(%[[W:.+]]) node
// CHECK:         exec.launch @k2{{.*}} outs(%[[Z:.+]], %[[Z3:.+]]) node
// CHECK:         exec.copy %[[W]]
// CHECK:         exec.copy %[[Z]] to %[[PX]]
// CHECK:         exec.copy %[[Z3]] to %[[PY]]
module attributes {graph.variables = [
    #graph.variable<"w", parameter, tensor<4xf32>>,
    #graph.variable<"gradient/w", gradient, tensor<4xf32> of "w" bucket 0 : i64>,
    #graph.variable<"gradient/v", gradient, tensor<3xf32> of "v" bucket 0 : i64>]} {
  func.func @step(%x: tensor<4xf32>, %y: tensor<3xf32>, %w: tensor<4xf32> {graph.variable = "w"})
      -> (tensor<4xf32> {graph.variable = "w"}, tensor<4xf32> {graph.variable = "gradient/w"},
          tensor<3xf32> {graph.variable = "gradient/v"}) {
    %0:2 = graph.fused <pointwise> (%x, %y)
        : (tensor<4xf32>, tensor<3xf32>) -> (tensor<4xf32>, tensor<3xf32>) {
    ^bb0(%a: tensor<4xf32>, %b: tensor<3xf32>):
      %c = graph.neg %a : (tensor<4xf32>) -> tensor<4xf32>
      %d = graph.neg %b : (tensor<3xf32>) -> tensor<3xf32>
      graph.yield %c, %d : tensor<4xf32>, tensor<3xf32>
    }
    %1:2 = graph.all_reduce %0#0, %0#1 into ["gradient/w", "gradient/v"]
        : tensor<4xf32>, tensor<3xf32>
    %2 = graph.fused <pointwise> (%w, %1#0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>):
      %c = graph.sub %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      graph.yield %c : tensor<4xf32>
    }
    %3:2 = graph.fused <pointwise> () : () -> (tensor<4xf32>, tensor<3xf32>) {
      %c = graph.constant dense<0.0> : tensor<4xf32>
      %d = graph.constant dense<0.0> : tensor<3xf32>
      graph.yield %c, %d : tensor<4xf32>, tensor<3xf32>
    }
    return %2, %3#0, %3#1 : tensor<4xf32>, tensor<4xf32>, tensor<3xf32>
  }
}
