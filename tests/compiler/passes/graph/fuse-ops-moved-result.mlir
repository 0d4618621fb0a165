// RUN: tcc-opt %s --tcc-fuse-ops --tcc-verify-fusion | FileCheck %s

// Attention stores its heads beside each other, where the next product reads
// them.
// CHECK-LABEL: func @heads
// CHECK:         %[[A:.+]] = graph.fused <attention>
// CHECK:           %[[Y:.+]] = graph.attention
// CHECK-NEXT:      %[[T:.+]] = graph.transpose %[[Y]] [0, 2, 1, 3]
// CHECK-NEXT:      graph.yield %[[T]]
// CHECK:         %[[R:.+]] = graph.reshape %[[A]]
// CHECK:         graph.fused <contraction> (%[[R]]
// CHECK-NOT:     graph.fused
func.func @heads(%q: tensor<1x4x32x16xf32>, %w: tensor<64x8xf32>)
    -> tensor<1x32x8xf32> {
  %a = graph.attention %q, %q, %q {scale = 0.25 : f64}
    : (tensor<1x4x32x16xf32>, tensor<1x4x32x16xf32>, tensor<1x4x32x16xf32>) -> tensor<1x4x32x16xf32>
  %t = graph.transpose %a [0, 2, 1, 3]
    : (tensor<1x4x32x16xf32>) -> tensor<1x32x4x16xf32>
  %r = graph.reshape %t : (tensor<1x32x4x16xf32>) -> tensor<1x32x64xf32>
  %y = graph.matmul %r, %w
    : (tensor<1x32x64xf32>, tensor<64x8xf32>) -> tensor<1x32x8xf32>
  return %y : tensor<1x32x8xf32>
}

// Heads that share a key are rows of it; what is pointwise comes before.
// CHECK-LABEL: func @grouped
// CHECK:         graph.fused <attention>
// CHECK:           %[[Y:.+]] = graph.attention
// CHECK-NEXT:      %[[C:.+]] = graph.cast %[[Y]]
// CHECK-NEXT:      %[[R:.+]] = graph.reshape %[[C]] {{.*}} -> tensor<1x4x32x16xbf16>
// CHECK-NEXT:      %[[T:.+]] = graph.transpose %[[R]] [0, 2, 1, 3]
// CHECK-NEXT:      graph.yield %[[T]]
// CHECK-NOT:     graph.fused
func.func @grouped(%q: tensor<1x2x64x16xf32>, %k: tensor<1x2x32x16xf32>)
    -> tensor<1x32x4x16xbf16> {
  %a = graph.attention %q, %k, %k {scale = 0.25 : f64}
    : (tensor<1x2x64x16xf32>, tensor<1x2x32x16xf32>, tensor<1x2x32x16xf32>) -> tensor<1x2x64x16xf32>
  %c = graph.cast %a : (tensor<1x2x64x16xf32>) -> tensor<1x2x64x16xbf16>
  %r = graph.reshape %c : (tensor<1x2x64x16xbf16>) -> tensor<1x4x32x16xbf16>
  %t = graph.transpose %r [0, 2, 1, 3]
    : (tensor<1x4x32x16xbf16>) -> tensor<1x32x4x16xbf16>
  return %t : tensor<1x32x4x16xbf16>
}

// A product stores whole rows: heads that its columns are split into are moved
// by another kernel.
// CHECK-LABEL: func @split_columns
// CHECK:         graph.fused <contraction>
// CHECK-NOT:       graph.transpose
// CHECK:         graph.fused <pointwise>
// CHECK-NEXT:    ^bb0
// CHECK-NEXT:      graph.transpose
func.func @split_columns(%x: tensor<32x8xf32>, %w: tensor<8x64xf32>)
    -> tensor<4x32x16xf32> {
  %m = graph.matmul %x, %w
    : (tensor<32x8xf32>, tensor<8x64xf32>) -> tensor<32x64xf32>
  %r = graph.reshape %m : (tensor<32x64xf32>) -> tensor<32x4x16xf32>
  %t = graph.transpose %r [1, 0, 2]
    : (tensor<32x4x16xf32>) -> tensor<4x32x16xf32>
  return %t : tensor<4x32x16xf32>
}

// So do columns that become rows.
// CHECK-LABEL: func @columns
// CHECK:         graph.fused <contraction>
// CHECK-NOT:       graph.transpose
// CHECK:         graph.fused <pointwise>
func.func @columns(%x: tensor<32x8xf32>, %w: tensor<8x64xf32>)
    -> tensor<64x32xf32> {
  %m = graph.matmul %x, %w
    : (tensor<32x8xf32>, tensor<8x64xf32>) -> tensor<32x64xf32>
  %t = graph.transpose %m [1, 0] : (tensor<32x64xf32>) -> tensor<64x32xf32>
  return %t : tensor<64x32xf32>
}
