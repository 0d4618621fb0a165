// RUN: tcc-opt %s --tcc-fuse-ops --tcc-verify-fusion --split-input-file | FileCheck %s
// Pointwise ops of one iteration shape become one kernel.

// A chain.
// CHECK-LABEL: func @chain
// CHECK:         %[[Y:.+]] = graph.fused <pointwise> (%arg0, %arg1)
// CHECK:           graph.exp
// CHECK:           graph.add
// CHECK:           graph.yield %{{.+}} : tensor<64x64xf32>
// CHECK:         return %[[Y]]
func.func @chain(%x: tensor<64x64xf32>, %y: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %a = graph.exp %x : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %b = graph.add %a, %y : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %b : tensor<64x64xf32>
}

// -----

// A value that is also read elsewhere becomes a second result.
// CHECK-LABEL: func @two_results
// CHECK:         %[[R:.+]]:2 = graph.fused <pointwise> (%arg0)
// CHECK:         return %[[R]]#0, %[[R]]#1
func.func @two_results(%x: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  %a = graph.exp %x : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %b = graph.tanh %a : (tensor<64x64xf32>) -> tensor<64x64xf32>
  return %a, %b : tensor<64x64xf32>, tensor<64x64xf32>
}

// -----

// Readers of one tensor read it once.
// CHECK-LABEL: func @siblings
// CHECK:         graph.fused <pointwise> (%arg0)
// CHECK-NOT:     = graph.fused
func.func @siblings(%x: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  %a = graph.sin %x : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %b = graph.cos %x : (tensor<64x64xf32>) -> tensor<64x64xf32>
  return %a, %b : tensor<64x64xf32>, tensor<64x64xf32>
}

// -----

// A broadcast is computed where it is read, a splat inside the kernel.
// CHECK-LABEL: func @broadcast
// CHECK:         graph.fused <pointwise> (%arg1, %arg0)
// CHECK-NEXT:    ^bb0(%[[B:.+]]: tensor<64xf32>, %[[X:.+]]: tensor<64x64xf32>)
// CHECK:           graph.constant dense<2.0{{.*}}> : tensor<64x64xf32>
// CHECK:           graph.broadcast %[[B]]
// CHECK-NOT:     = graph.fused
func.func @broadcast(%x: tensor<64x64xf32>, %b: tensor<64xf32>) -> tensor<64x64xf32> {
  %two = graph.constant dense<2.0> : tensor<64x64xf32>
  %c = graph.broadcast %b : (tensor<64xf32>) -> tensor<64x64xf32>
  %s = graph.mul %x, %two : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %y = graph.add %s, %c : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %y : tensor<64x64xf32>
}

// -----

// Merging the outer two would make a cycle through the loop between them.
// CHECK-LABEL: func @no_cycle
// CHECK:         graph.fused <pointwise>
// CHECK:         graph.if
// CHECK:         graph.fused <pointwise>
func.func @no_cycle(%x: tensor<64xf32>, %c: tensor<i1>) -> tensor<64xf32> {
  %a = graph.exp %x : (tensor<64xf32>) -> tensor<64xf32>
  %i = graph.if %c : (tensor<i1>) -> tensor<64xf32> {
    graph.yield %a : tensor<64xf32>
  } else {
    graph.yield %x : tensor<64xf32>
  }
  %b = graph.add %a, %i : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  return %b : tensor<64xf32>
}
