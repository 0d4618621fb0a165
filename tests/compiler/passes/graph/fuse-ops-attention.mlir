// RUN: tcc-opt %s --tcc-simplify --tcc-recognize-attention --tcc-simplify \
// RUN:   --tcc-fuse-ops --tcc-verify-fusion | FileCheck %s

// Attention as exporters write it is one kernel: the scale of the key goes into
// it, the transposes of the heads are indices of its operands, and so is the
// broadcast of the mask.
// CHECK-LABEL: func @attention
// CHECK:         graph.fused <contraction>
// CHECK-NEXT:    ^bb0
// CHECK-NEXT:      graph.matmul
// CHECK-NEXT:      graph.yield
// CHECK:         graph.fused <attention>
// CHECK-DAG:       graph.transpose {{.*}} [0, 2, 1, 3]
// CHECK-DAG:       graph.transpose {{.*}} [0, 2, 1, 3]
// CHECK-DAG:       graph.transpose {{.*}} [0, 2, 1, 3]
// CHECK-DAG:       %[[M:.+]] = graph.broadcast
// CHECK:           graph.attention {{.*}} mask %[[M]] {guard, scale = 2.500000e-01 : f64}
// CHECK-NEXT:      graph.yield
// CHECK-NOT:     graph.fused
func.func @attention(%x: tensor<1x32x64xf32>, %query: tensor<1x32x64xf32>,
                     %value: tensor<1x32x64xf32>, %mask: tensor<1x1x1x32xf32>)
    -> tensor<1x4x32x16xf32> {
  %w = graph.weight "w" : tensor<64x64xf32>
  %scale = graph.constant dense<2.500000e-01> : tensor<f32>
  %zero = graph.constant dense<0.0> : tensor<f32>
  %key = graph.matmul %x, %w
    : (tensor<1x32x64xf32>, tensor<64x64xf32>) -> tensor<1x32x64xf32>
  %k0 = graph.reshape %key : (tensor<1x32x64xf32>) -> tensor<1x32x4x16xf32>
  %k1 = graph.transpose %k0 [0, 2, 1, 3]
    : (tensor<1x32x4x16xf32>) -> tensor<1x4x32x16xf32>
  %k2 = graph.reshape %k1 : (tensor<1x4x32x16xf32>) -> tensor<4x32x16xf32>
  %k3 = graph.transpose %k2 [0, 2, 1]
    : (tensor<4x32x16xf32>) -> tensor<4x16x32xf32>
  %k4 = graph.reshape %k3 : (tensor<4x16x32xf32>) -> tensor<1x4x16x32xf32>
  %s = graph.broadcast %scale : (tensor<f32>) -> tensor<1x4x16x32xf32>
  %k = graph.mul %k4, %s
    : (tensor<1x4x16x32xf32>, tensor<1x4x16x32xf32>) -> tensor<1x4x16x32xf32>
  %q0 = graph.reshape %query : (tensor<1x32x64xf32>) -> tensor<1x32x4x16xf32>
  %q = graph.transpose %q0 [0, 2, 1, 3]
    : (tensor<1x32x4x16xf32>) -> tensor<1x4x32x16xf32>
  %scores = graph.matmul %q, %k
    : (tensor<1x4x32x16xf32>, tensor<1x4x16x32xf32>) -> tensor<1x4x32x32xf32>
  %m = graph.broadcast %mask : (tensor<1x1x1x32xf32>) -> tensor<1x4x32x32xf32>
  %masked = graph.add %scores, %m
    : (tensor<1x4x32x32xf32>, tensor<1x4x32x32xf32>) -> tensor<1x4x32x32xf32>
  %p = graph.softmax %masked {axis = 3 : i64}
    : (tensor<1x4x32x32xf32>) -> tensor<1x4x32x32xf32>
  %nan = graph.is_nan %p : (tensor<1x4x32x32xf32>) -> tensor<1x4x32x32xi1>
  %z = graph.broadcast %zero : (tensor<f32>) -> tensor<1x4x32x32xf32>
  %guarded = graph.select %nan, %z, %p
    : (tensor<1x4x32x32xi1>, tensor<1x4x32x32xf32>, tensor<1x4x32x32xf32>)
      -> tensor<1x4x32x32xf32>
  %v0 = graph.reshape %value : (tensor<1x32x64xf32>) -> tensor<1x32x4x16xf32>
  %v = graph.transpose %v0 [0, 2, 1, 3]
    : (tensor<1x32x4x16xf32>) -> tensor<1x4x32x16xf32>
  %y = graph.matmul %guarded, %v
    : (tensor<1x4x32x32xf32>, tensor<1x4x32x16xf32>) -> tensor<1x4x32x16xf32>
  return %y : tensor<1x4x32x16xf32>
}

// Keys that four queries share are repeated by the indices of the product.
// CHECK-LABEL: func @grouped_queries
// CHECK:         graph.fused <contraction>
// CHECK:           graph.broadcast
// CHECK:           graph.matmul
// CHECK:           graph.yield
// CHECK-NOT:     graph.fused
func.func @grouped_queries(%q: tensor<1x8x16x64xf32>, %k: tensor<1x2x16x64xf32>)
    -> tensor<1x8x16x16xf32> {
  %0 = graph.reshape %k : (tensor<1x2x16x64xf32>) -> tensor<1x2x1x16x64xf32>
  %1 = graph.broadcast %0
    : (tensor<1x2x1x16x64xf32>) -> tensor<1x2x4x16x64xf32>
  %2 = graph.reshape %1 : (tensor<1x2x4x16x64xf32>) -> tensor<1x8x16x64xf32>
  %3 = graph.transpose %2 [0, 1, 3, 2]
    : (tensor<1x8x16x64xf32>) -> tensor<1x8x64x16xf32>
  %y = graph.matmul %q, %3
    : (tensor<1x8x16x64xf32>, tensor<1x8x64x16xf32>) -> tensor<1x8x16x16xf32>
  return %y : tensor<1x8x16x16xf32>
}

// Parts of one projection are read where they lie.
// CHECK-LABEL: func @parts_of_a_projection
// CHECK:         graph.fused <attention> (%{{[^,]*}}) : (tensor<32x3x4x16xf32>)
// CHECK-COUNT-3:   graph.slice
// CHECK:           graph.attention
// CHECK-NOT:     graph.fused
func.func @parts_of_a_projection(%x: tensor<32x192xf32>)
    -> tensor<1x4x32x16xf32> {
  %r = graph.reshape %x : (tensor<32x192xf32>) -> tensor<32x3x4x16xf32>
  %t = graph.transpose %r [1, 2, 0, 3]
    : (tensor<32x3x4x16xf32>) -> tensor<3x4x32x16xf32>
  %q = graph.slice %t {starts = affine_map<() -> (0, 0, 0, 0)>, steps = array<i64: 1, 1, 1, 1>}
    : (tensor<3x4x32x16xf32>) -> tensor<1x4x32x16xf32>
  %k = graph.slice %t {starts = affine_map<() -> (1, 0, 0, 0)>, steps = array<i64: 1, 1, 1, 1>}
    : (tensor<3x4x32x16xf32>) -> tensor<1x4x32x16xf32>
  %v = graph.slice %t {starts = affine_map<() -> (2, 0, 0, 0)>, steps = array<i64: 1, 1, 1, 1>}
    : (tensor<3x4x32x16xf32>) -> tensor<1x4x32x16xf32>
  %y = graph.attention %q, %k, %v {scale = 0.25 : f64}
    : (tensor<1x4x32x16xf32>, tensor<1x4x32x16xf32>, tensor<1x4x32x16xf32>) -> tensor<1x4x32x16xf32>
  return %y : tensor<1x4x32x16xf32>
}
