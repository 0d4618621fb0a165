// RUN: tcc-opt %s --tcc-lower-to-exec --split-input-file | FileCheck %s

// Variables are no inputs or outputs. New values are complete before the first
// is stored, as one may be computed from the old value of another; what is not
// changed is not stored.
// CHECK: exec.entry @step inputs [#exec.tensor<"x", tensor<4xf32>>]
// CHECK-SAME: outputs [#exec.tensor<"loss", tensor<4xf32>>]
// CHECK:      %[[X:.+]] = exec.buffer input 0
// CHECK-NEXT: %[[W:.+]] = exec.buffer variable 1
// CHECK-NEXT: %[[V:.+]] = exec.buffer variable 0
// CHECK-NEXT: %[[LOSS:.+]] = exec.buffer output 0
// CHECK-NEXT: %[[W1:.+]] = exec.buffer scratch
// CHECK-NEXT: %[[U1:.+]] = exec.buffer scratch
// CHECK-NEXT: exec.launch @k0{{.*}} ins(%[[X]], %[[W]]) outs(%[[W1]])
// CHECK-NEXT: exec.copy %[[X]] to %[[LOSS]]
// CHECK-NEXT: exec.copy %[[V]] to %[[U1]]
// CHECK-NEXT: exec.copy %[[W1]] to %[[W]]
// CHECK-NEXT: %[[U:.+]] = exec.buffer variable 2
// CHECK-NEXT: exec.copy %[[U1]] to %[[U]]
// CHECK-NOT:  exec.copy
module attributes {graph.variables = [
    #graph.variable<"v", step, tensor<4xf32>>,
    #graph.variable<"w", parameter, tensor<4xf32>>,
    #graph.variable<"u", step, tensor<4xf32>>]} {
  func.func @step(%x: tensor<4xf32> {graph.name = "x"},
                  %w: tensor<4xf32> {graph.variable = "w"},
                  %v: tensor<4xf32> {graph.variable = "v"})
      -> (tensor<4xf32> {graph.name = "loss"},
          tensor<4xf32> {graph.variable = "w"},
          tensor<4xf32> {graph.variable = "v"},
          tensor<4xf32> {graph.variable = "u"}) {
    %0 = graph.fused <pointwise> (%x, %w)
        : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>):
      %c = graph.add %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      graph.yield %c : tensor<4xf32>
    }
    return %x, %0, %v, %v
        : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  }
}
