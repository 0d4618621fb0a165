// RUN: tcc-opt %s --tcc-lower-to-exec --tcc-share-buffers --split-input-file \
// RUN:   | FileCheck %s

// The last reader writes over what it reads, as both are one element each time;
// an input of the model is never written.
// CHECK-LABEL: exec.entry @main
// CHECK:         %[[Y:[0-9]+]] = exec.buffer output 0
// CHECK:         %[[X:[0-9]+]] = exec.buffer input 0
// CHECK-NOT:     exec.buffer scratch
// CHECK:         exec.launch @k0{{.*}} ins(%[[X]]) outs(%[[Y]])
// CHECK-NEXT:    exec.launch @k1{{.*}} ins(%[[Y]]) outs(%[[Y]])
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = graph.fused <pointwise> (%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    %b = graph.exp %a : (tensor<4xf32>) -> tensor<4xf32>
    graph.yield %b : tensor<4xf32>
  }
  %1 = graph.fused <pointwise> (%0) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    %b = graph.neg %a : (tensor<4xf32>) -> tensor<4xf32>
    graph.yield %b : tensor<4xf32>
  }
  return %1 : tensor<4xf32>
}

// -----

// Of two results that read one input, one takes its buffer: they would write
// over each other.
// CHECK-LABEL: exec.kernel @k1
// CHECK:         in_place = [array<i64: 0, 0>]
// CHECK-LABEL: exec.entry @main
// CHECK:         exec.launch @k1{{.*}} ins(%[[A:[0-9]+]]) outs(%[[A]], %[[B:[0-9]+]])
// CHECK-NEXT:    exec.launch @k2{{.*}} ins(%[[A]], %[[B]])
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = graph.fused <pointwise> (%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    %b = graph.exp %a : (tensor<4xf32>) -> tensor<4xf32>
    graph.yield %b : tensor<4xf32>
  }
  %1:2 = graph.fused <pointwise> (%0)
      : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  ^bb0(%a: tensor<4xf32>):
    %b = graph.neg %a : (tensor<4xf32>) -> tensor<4xf32>
    %c = graph.abs %a : (tensor<4xf32>) -> tensor<4xf32>
    graph.yield %b, %c : tensor<4xf32>, tensor<4xf32>
  }
  %2 = graph.fused <pointwise> (%1#0, %1#1)
      : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>):
    %c = graph.div %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    graph.yield %c : tensor<4xf32>
  }
  return %2 : tensor<4xf32>
}

// -----

// A result is not written over an input that another result reads at other
// positions.
// CHECK-LABEL: exec.kernel @k1
// CHECK-NOT:     in_place
// CHECK-LABEL: exec.entry @main
// CHECK:         %[[Y:[0-9]+]] = exec.buffer output 0
// CHECK:         %[[Z:[0-9]+]] = exec.buffer output 1
// CHECK:         %[[A:[0-9]+]] = exec.buffer scratch
// CHECK:         exec.launch @k1{{.*}} ins(%[[A]]) outs(%[[Y]], %[[Z]])
func.func @main(%x: tensor<3x3xf32>) -> (tensor<3x3xf32>, tensor<3x3xf32>) {
  %0 = graph.fused <pointwise> (%x) : (tensor<3x3xf32>) -> tensor<3x3xf32> {
  ^bb0(%a: tensor<3x3xf32>):
    %b = graph.exp %a : (tensor<3x3xf32>) -> tensor<3x3xf32>
    graph.yield %b : tensor<3x3xf32>
  }
  %1:2 = graph.fused <pointwise> (%0)
      : (tensor<3x3xf32>) -> (tensor<3x3xf32>, tensor<3x3xf32>) {
  ^bb0(%a: tensor<3x3xf32>):
    %b = graph.neg %a : (tensor<3x3xf32>) -> tensor<3x3xf32>
    %c = graph.transpose %a [1, 0] : (tensor<3x3xf32>) -> tensor<3x3xf32>
    graph.yield %b, %c : tensor<3x3xf32>, tensor<3x3xf32>
  }
  return %1#0, %1#1 : tensor<3x3xf32>, tensor<3x3xf32>
}

// -----

// A row is read before its results are written: softmax works in place. An
// input that is read at one place of each row keeps its own buffer.
// CHECK-LABEL: exec.kernel @k1
// CHECK:         in_place = [array<i64: 0, 0>]
// CHECK-LABEL: exec.entry @main
// CHECK:         exec.launch @k1{{.*}} ins(%[[A:[0-9]+]], %[[S:[0-9]+]]) outs(%[[A]])
func.func @main(%x: tensor<2x8xf32>, %s: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %0:2 = graph.fused <pointwise> (%x, %s)
      : (tensor<2x8xf32>, tensor<2x8xf32>)
        -> (tensor<2x8xf32>, tensor<2x8xf32>) {
  ^bb0(%a: tensor<2x8xf32>, %b: tensor<2x8xf32>):
    %c = graph.exp %a : (tensor<2x8xf32>) -> tensor<2x8xf32>
    %d = graph.exp %b : (tensor<2x8xf32>) -> tensor<2x8xf32>
    graph.yield %c, %d : tensor<2x8xf32>, tensor<2x8xf32>
  }
  %1 = graph.fused <row> (%0#0, %0#1)
      : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32> {
  ^bb0(%a: tensor<2x8xf32>, %b: tensor<2x8xf32>):
    %c = graph.softmax %a {axis = 1 : i64}
      : (tensor<2x8xf32>) -> tensor<2x8xf32>
    %d = graph.slice %b {starts = affine_map<() -> (0, 7)>,
                         steps = array<i64: 1, 1>}
      : (tensor<2x8xf32>) -> tensor<2x1xf32>
    %e = graph.broadcast %d : (tensor<2x1xf32>) -> tensor<2x8xf32>
    %f = graph.mul %c, %e
      : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
    graph.yield %f : tensor<2x8xf32>
  }
  return %1 : tensor<2x8xf32>
}
