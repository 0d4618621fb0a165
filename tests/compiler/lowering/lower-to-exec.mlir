// RUN: tcc-opt %s --tcc-lower-to-exec --split-input-file | FileCheck %s

// A kernel writes its result straight to the output; a reshape is no command.
// CHECK: exec.kernel @k0_graph_fused
// CHECK: exec.entry @main inputs [#exec.tensor<"x", tensor<4xf32>>]
// CHECK-SAME: outputs [#exec.tensor<"y", tensor<2x2xf32>>]
// CHECK: %[[X:.+]] = exec.buffer input 0
// CHECK: %[[Y:.+]] = exec.buffer output 0 bytes #{{.+}} bound 16
// CHECK-NEXT: exec.launch @k0_graph_fused ins(%[[X]]) outs(%[[Y]])
// CHECK-NOT: exec.copy
func.func @main(%x: tensor<4xf32> {graph.name = "x"})
    -> (tensor<2x2xf32> {graph.name = "y"}) {
  %0 = graph.fused <pointwise> (%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    %b = graph.exp %a : (tensor<4xf32>) -> tensor<4xf32>
    graph.yield %b : tensor<4xf32>
  }
  %1 = graph.reshape %0 : (tensor<4xf32>) -> tensor<2x2xf32>
  return %1 : tensor<2x2xf32>
}

// -----

// An input, a weight and a second name of one value are copied to outputs.
// CHECK: exec.constant "w" : tensor<4xf32>
// CHECK: exec.entry @main
// CHECK: %[[W:.+]] = exec.buffer constant 0
// CHECK: %[[X:.+]] = exec.buffer input 0
// CHECK: %[[A:.+]] = exec.buffer output 0
// CHECK: %[[B:.+]] = exec.buffer output 1
// CHECK: exec.copy %[[X]] to %[[A]]
// CHECK: exec.copy %[[W]] to %[[B]]
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %w = graph.weight "w" : tensor<4xf32>
  return %x, %w : tensor<4xf32>, tensor<4xf32>
}

// -----

// Branches write to the buffer of the result.
// CHECK: exec.entry @main
// CHECK: %[[F:.+]] = exec.buffer input 0
// CHECK: %[[Y:.+]] = exec.buffer output 0
// CHECK: exec.if %[[F]]
// CHECK: exec.launch @k0{{.*}} outs(%[[Y]])
// CHECK: else
// CHECK: exec.copy %{{.+}} to %[[Y]]
func.func @main(%f: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %r = graph.if %f : (tensor<i1>) -> tensor<4xf32> {
    %0 = graph.fused <pointwise> (%x) : (tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%a: tensor<4xf32>):
      %b = graph.exp %a : (tensor<4xf32>) -> tensor<4xf32>
      graph.yield %b : tensor<4xf32>
    }
    graph.yield %0 : tensor<4xf32>
  } else {
    graph.yield %x : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
