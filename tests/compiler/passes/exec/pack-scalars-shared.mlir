// RUN: tcc-opt %s --tcc-lower-to-exec --tcc-share-buffers --tcc-pack-scalars \
// RUN:   | FileCheck %s

// Scalars that a later launch writes over stay parts of one line, also where
// they are the first that the entry point declares.
// CHECK-LABEL: exec.entry @main
// CHECK-NEXT:    %[[LINE:.+]] = exec.buffer scratch bytes #{{.+}} bound 32
// CHECK-NEXT:    %[[A:.+]] = exec.view %[[LINE]]
// CHECK-NEXT:    %[[B:.+]] = exec.view %[[LINE]]
// CHECK-NOT:     exec.buffer scratch
// CHECK:         exec.launch @k0{{.*}} outs(%[[A]], %[[B]])
// CHECK-NEXT:    exec.launch @k1{{.*}} ins(%[[A]], %[[B]]) outs(%[[A]], %[[B]])
// CHECK-NEXT:    exec.launch @k2{{.*}} ins(%[[A]], %[[B]],
func.func @main(%x: tensor<f32>, %y: tensor<f32>, %z: tensor<8xf32>)
    -> tensor<8xf32> {
  %0:2 = graph.fused <pointwise> (%x, %y)
      : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = graph.exp %a : (tensor<f32>) -> tensor<f32>
    %d = graph.exp %b : (tensor<f32>) -> tensor<f32>
    graph.yield %c, %d : tensor<f32>, tensor<f32>
  }
  %1:2 = graph.fused <pointwise> (%0#0, %0#1)
      : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = graph.neg %a : (tensor<f32>) -> tensor<f32>
    %d = graph.neg %b : (tensor<f32>) -> tensor<f32>
    graph.yield %c, %d : tensor<f32>, tensor<f32>
  }
  %2 = graph.fused <pointwise> (%1#0, %1#1, %z)
      : (tensor<f32>, tensor<f32>, tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<8xf32>):
    %d = graph.neg %c : (tensor<8xf32>) -> tensor<8xf32>
    graph.yield %d : tensor<8xf32>
  }
  return %2 : tensor<8xf32>
}
