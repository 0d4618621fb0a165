// RUN: tcc-opt %s --tcc-fold-batch-norm --canonicalize | FileCheck %s

// CHECK-DAG:   decision = "folded", node = "conv_1"
// CHECK-DAG:   decision = "kept", node = "bn_2"

// The factor goes into the filter, past the bias.
// CHECK-LABEL: func @after_conv
// CHECK-SAME:    (%[[X:.+]]: tensor
// CHECK:         %[[W:.+]] = graph.weight "w"
// CHECK:         %[[A:.+]] = graph.broadcast %{{.*}} : (tensor<8x1x1xf32>) -> tensor<8x4x3xf32>
// CHECK:         %[[V:.+]] = graph.mul %[[W]], %[[A]]
// CHECK:         %[[C:.+]] = graph.conv %[[X]], %[[V]]
// CHECK:         %[[B:.+]] = graph.broadcast %{{.*}} -> tensor<?x8x16xf32
// CHECK-NEXT:    %[[Y:.+]] = graph.add %[[C]], %[[B]]
// CHECK-NEXT:    return %[[Y]]
#t = affine_map<()[s0] -> (s0, 4, 16)>
#u = affine_map<()[s0] -> (s0, 8, 16)>
func.func @after_conv(%x: tensor<?x4x16xf32, #t>) -> tensor<?x8x16xf32, #u> {
  %w = graph.weight "w" : tensor<8x4x3xf32>
  %b = graph.weight "b" : tensor<8xf32>
  %s = graph.weight "scale" : tensor<8xf32>
  %h = graph.weight "shift" : tensor<8xf32>
  %m = graph.weight "mean" : tensor<8xf32>
  %v = graph.weight "variance" : tensor<8xf32>
  %c = graph.conv %x, %w {filters = 8, groups = 1, window = array<i64: 3>,
    strides = array<i64: 1>, pad_low = array<i64: 1>, pad_high = array<i64: 1>,
    dilations = array<i64: 1>}
    : (tensor<?x4x16xf32, #t>, tensor<8x4x3xf32>) -> tensor<?x8x16xf32, #u>
    loc("conv_1")
  %r = graph.reshape %b : (tensor<8xf32>) -> tensor<8x1xf32>
  %e = graph.broadcast %r : (tensor<8x1xf32>) -> tensor<?x8x16xf32, #u>
  %d = graph.add %c, %e : (tensor<?x8x16xf32, #u>, tensor<?x8x16xf32, #u>)
    -> tensor<?x8x16xf32, #u>
  %y = graph.batch_norm %d, %s, %h, %m, %v {epsilon = 1.0e-5}
    : (tensor<?x8x16xf32, #u>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>,
       tensor<8xf32>) -> tensor<?x8x16xf32, #u> loc("bn_1")
  return %y : tensor<?x8x16xf32, #u>
}

// A transposed convolution has the channels of its result as the filter's axis 1.
// CHECK-LABEL: func @after_conv_transpose
// CHECK:         graph.broadcast %{{.*}} : (tensor<5x1xf32>) -> tensor<8x5x4xf32>
// CHECK-NEXT:    %[[V:.+]] = graph.mul
// CHECK-NEXT:    %[[Y:.+]] = graph.conv_transpose %{{.*}}, %[[V]]
// CHECK-NEXT:    return %[[Y]]
func.func @after_conv_transpose(%x: tensor<1x8x10xf32>) -> tensor<1x5x20xf32> {
  %w = graph.weight "w" : tensor<8x5x4xf32>
  %a = graph.weight "a" : tensor<5x1xf32>
  %e = graph.broadcast %a : (tensor<5x1xf32>) -> tensor<1x5x20xf32>
  %c = graph.conv_transpose %x, %w {groups = 1 : i64, window = array<i64: 4>,
    strides = array<i64: 2>, pad_low = array<i64: 1>, pad_high = array<i64: 1>,
    dilations = array<i64: 1>}
    : (tensor<1x8x10xf32>, tensor<8x5x4xf32>) -> tensor<1x5x20xf32>
  %y = graph.mul %c, %e : (tensor<1x5x20xf32>, tensor<1x5x20xf32>) -> tensor<1x5x20xf32>
  return %y : tensor<1x5x20xf32>
}

// The product's columns are scaled; a transposed weight holds them as rows.
// CHECK-LABEL: func @after_matmul
// CHECK:         graph.broadcast %{{.*}} : (tensor<8x1xf32>) -> tensor<8x4xf32>
// CHECK-NEXT:    %[[V:.+]] = graph.mul
// CHECK-NEXT:    %[[Y:.+]] = graph.matmul %{{.*}}, %[[V]] {transpose_rhs}
// CHECK-NEXT:    return %[[Y]]
func.func @after_matmul(%x: tensor<2x4xf32>) -> tensor<2x8xf32> {
  %w = graph.weight "w" : tensor<8x4xf32>
  %a = graph.weight "a" : tensor<8xf32>
  %e = graph.broadcast %a : (tensor<8xf32>) -> tensor<2x8xf32>
  %c = graph.matmul %x, %w {transpose_rhs}
    : (tensor<2x4xf32>, tensor<8x4xf32>) -> tensor<2x8xf32>
  %y = graph.mul %c, %e : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

// Another reader needs the convolution as it is.
// CHECK-LABEL: func @shared_stays
// CHECK:         %[[C:.+]] = graph.conv
// CHECK:         graph.mul %[[C]]
func.func @shared_stays(%x: tensor<1x4x16xf32>)
    -> (tensor<1x8x16xf32>, tensor<1x8x16xf32>) {
  %w = graph.weight "w" : tensor<8x4x3xf32>
  %s = graph.weight "scale" : tensor<8xf32>
  %c = graph.conv %x, %w {filters = 8, groups = 1, window = array<i64: 3>,
    strides = array<i64: 1>, pad_low = array<i64: 1>, pad_high = array<i64: 1>,
    dilations = array<i64: 1>}
    : (tensor<1x4x16xf32>, tensor<8x4x3xf32>) -> tensor<1x8x16xf32>
  %y = graph.batch_norm %c, %s, %s, %s, %s {epsilon = 1.0e-5}
    : (tensor<1x8x16xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>,
       tensor<8xf32>) -> tensor<1x8x16xf32> loc("bn_2")
  return %y, %c : tensor<1x8x16xf32>, tensor<1x8x16xf32>
}

// What a loop scales stays outside of it, where it is computed once.
// CHECK-LABEL: func @in_loop_stays
// CHECK:         graph.matmul
// CHECK:         graph.loop
// CHECK-NOT:     graph.matmul
// CHECK:         return
func.func @in_loop_stays(%x: tensor<2x4xf32>, %n: tensor<i64>)
    -> tensor<2x8xf32> {
  %w = graph.weight "w" : tensor<4x8xf32>
  %s = graph.weight "s" : tensor<8xf32>
  %b = graph.broadcast %s : (tensor<8xf32>) -> tensor<2x8xf32>
  %m = graph.matmul %x, %w
    : (tensor<2x4xf32>, tensor<4x8xf32>) -> tensor<2x8xf32>
  %r = graph.loop trips %n : tensor<i64> inits %b : tensor<2x8xf32>
      -> tensor<2x8xf32> {
  ^bb0(%i: tensor<i64>, %c: tensor<2x8xf32>):
    %go = graph.constant dense<true> : tensor<i1>
    %p = graph.mul %m, %b
      : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
    %a = graph.add %c, %p
      : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
    graph.yield %go, %a : tensor<i1>, tensor<2x8xf32>
  }
  return %r : tensor<2x8xf32>
}
