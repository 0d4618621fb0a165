// RUN: tcc-opt %s --tcc-fold-batch-norm --split-input-file | FileCheck %s

// A factor and a term of each group, then of each channel: one factor and one term,
// made of weights alone, on as few elements as those of channels.
// CHECK-LABEL: @groups
// CHECK-DAG:   %[[A:.+]] = graph.weight "a"
// CHECK-DAG:   %[[B:.+]] = graph.weight "b"
// CHECK-DAG:   %[[C:.+]] = graph.weight "c"
// CHECK-DAG:   %[[D:.+]] = graph.weight "d"
// CHECK-DAG:   %[[RB:.+]] = graph.broadcast %[[B]] : (tensor<8x1x1xf32>) -> tensor<8x4x1xf32>
// CHECK-DAG:   %[[BC:.+]] = graph.mul %[[RB]], %[[C]]
// CHECK-DAG:   %[[RA:.+]] = graph.broadcast %[[A]] : (tensor<8x1x1xf32>) -> tensor<8x4x1xf32>
// CHECK-DAG:   %[[AC:.+]] = graph.mul %[[RA]], %[[C]]
// CHECK-DAG:   %[[T:.+]] = graph.add %[[BC]], %[[D]]
// CHECK-DAG:   %[[F:.+]] = graph.broadcast %[[AC]] : (tensor<8x4x1xf32>) -> tensor<2x8x4x9xf32>
// CHECK-DAG:   %[[P:.+]] = graph.mul %arg0, %[[F]]
// CHECK-DAG:   %[[S:.+]] = graph.broadcast %[[T]] : (tensor<8x4x1xf32>) -> tensor<2x8x4x9xf32>
// CHECK:       %[[R:.+]] = graph.add %[[P]], %[[S]]
// CHECK-NEXT:  return %[[R]]
func.func @groups(%x: tensor<2x8x4x9xf32>) -> tensor<2x8x4x9xf32> {
  %a = graph.weight "a" : tensor<8x1x1xf32>
  %b = graph.weight "b" : tensor<8x1x1xf32>
  %c = graph.weight "c" : tensor<8x4x1xf32>
  %d = graph.weight "d" : tensor<8x4x1xf32>
  %ra = graph.broadcast %a : (tensor<8x1x1xf32>) -> tensor<2x8x4x9xf32>
  %rb = graph.broadcast %b : (tensor<8x1x1xf32>) -> tensor<2x8x4x9xf32>
  %rc = graph.broadcast %c : (tensor<8x4x1xf32>) -> tensor<2x8x4x9xf32>
  %rd = graph.broadcast %d : (tensor<8x4x1xf32>) -> tensor<2x8x4x9xf32>
  %1 = graph.mul %x, %ra : (tensor<2x8x4x9xf32>, tensor<2x8x4x9xf32>) -> tensor<2x8x4x9xf32>
  %2 = graph.add %rb, %1 : (tensor<2x8x4x9xf32>, tensor<2x8x4x9xf32>) -> tensor<2x8x4x9xf32>
  %3 = graph.mul %2, %rc : (tensor<2x8x4x9xf32>, tensor<2x8x4x9xf32>) -> tensor<2x8x4x9xf32>
  %4 = graph.add %3, %rd : (tensor<2x8x4x9xf32>, tensor<2x8x4x9xf32>) -> tensor<2x8x4x9xf32>
  return %4 : tensor<2x8x4x9xf32>
}

// -----

// Left: weights of other axes, which have more elements together than either; a constant;
// what is no weight; what is read elsewhere, too.
// CHECK-LABEL: @left
// CHECK:         graph.mul %arg0
// CHECK-NEXT:    graph.mul
// CHECK:         graph.add %arg0
// CHECK-NEXT:    graph.add
// CHECK:         graph.mul %arg0
// CHECK-NEXT:    graph.mul
// CHECK:         graph.add %arg0
// CHECK-NEXT:    graph.add
func.func @left(%x: tensor<8x4xf32>, %v: tensor<4xf32>)
    -> (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>) {
  %a = graph.weight "a" : tensor<8x1xf32>
  %b = graph.weight "b" : tensor<4xf32>
  %h = graph.constant dense<0.5> : tensor<f32>
  %ra = graph.broadcast %a : (tensor<8x1xf32>) -> tensor<8x4xf32>
  %rb = graph.broadcast %b : (tensor<4xf32>) -> tensor<8x4xf32>
  %rh = graph.broadcast %h : (tensor<f32>) -> tensor<8x4xf32>
  %rv = graph.broadcast %v : (tensor<4xf32>) -> tensor<8x4xf32>
  %1 = graph.mul %x, %ra : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %2 = graph.mul %1, %rb : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %3 = graph.add %x, %rh : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %4 = graph.add %3, %rb : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %5 = graph.mul %x, %rb : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %6 = graph.mul %5, %rv : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %7 = graph.add %x, %rb : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %8 = graph.add %7, %rb : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  return %2, %4, %6, %7, %8 : tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>,
    tensor<8x4xf32>
}
