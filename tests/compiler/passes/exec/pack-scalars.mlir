// RUN: tcc-opt %s --tcc-lower-to-exec --tcc-pack-scalars --tcc-plan-memory \
// RUN:   --split-input-file | FileCheck %s

// Scalars that one launch computes share a line; a tensor and the result of the
// entry point have their own memory.
// CHECK-LABEL: exec.entry @main
// CHECK-SAME:    scratch_bytes = 128
// CHECK:         %[[LINE:.+]] = exec.buffer scratch bytes #{{.+}} bound 32 offset [[LINE_AT:[0-9]+]]
// CHECK-NEXT:    %[[A:.+]] = exec.view %[[LINE]] at #{{.+}} bytes #{{.+}} bound 4
// CHECK-NEXT:    %[[B:.+]] = exec.view %[[LINE]] at #{{.+}} bytes #{{.+}} bound 8
// CHECK:         exec.launch @k0{{.*}} outs(%[[A]], %[[B]], %[[TENSOR:[0-9]+]])
// CHECK:         exec.launch @k1{{.*}} ins(%[[A]], %[[TENSOR]])
// CHECK:         exec.launch @k2{{.*}} ins(%[[B]])
func.func @main(%x: tensor<f32>, %y: tensor<f64>, %z: tensor<8xf32>)
    -> (tensor<8xf32>, tensor<f64>) {
  %0:3 = graph.fused <pointwise> (%x, %y, %z)
      : (tensor<f32>, tensor<f64>, tensor<8xf32>)
      -> (tensor<f32>, tensor<f64>, tensor<8xf32>) {
  ^bb0(%a: tensor<f32>, %b: tensor<f64>, %c: tensor<8xf32>):
    %d = graph.exp %a : (tensor<f32>) -> tensor<f32>
    %e = graph.exp %b : (tensor<f64>) -> tensor<f64>
    %f = graph.exp %c : (tensor<8xf32>) -> tensor<8xf32>
    graph.yield %d, %e, %f : tensor<f32>, tensor<f64>, tensor<8xf32>
  }
  %1 = graph.fused <pointwise> (%0#0, %0#2)
      : (tensor<f32>, tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%a: tensor<f32>, %b: tensor<8xf32>):
    %c = graph.neg %b : (tensor<8xf32>) -> tensor<8xf32>
    graph.yield %c : tensor<8xf32>
  }
  %2 = graph.fused <pointwise> (%0#1) : (tensor<f64>) -> tensor<f64> {
  ^bb0(%a: tensor<f64>):
    %b = graph.neg %a : (tensor<f64>) -> tensor<f64>
    graph.yield %b : tensor<f64>
  }
  return %1, %2 : tensor<8xf32>, tensor<f64>
}

// -----

// One scalar alone stays as it is.
// CHECK-LABEL: exec.entry @main
// CHECK-NOT:     exec.view
// CHECK:         exec.launch @k1
func.func @main(%x: tensor<f32>) -> tensor<f32> {
  %0 = graph.fused <pointwise> (%x) : (tensor<f32>) -> tensor<f32> {
  ^bb0(%a: tensor<f32>):
    %b = graph.exp %a : (tensor<f32>) -> tensor<f32>
    graph.yield %b : tensor<f32>
  }
  %1 = graph.fused <pointwise> (%0) : (tensor<f32>) -> tensor<f32> {
  ^bb0(%a: tensor<f32>):
    %b = graph.neg %a : (tensor<f32>) -> tensor<f32>
    graph.yield %b : tensor<f32>
  }
  return %1 : tensor<f32>
}
