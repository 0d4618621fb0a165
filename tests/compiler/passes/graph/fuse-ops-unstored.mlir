// RUN: tcc-opt %s --tcc-fuse-ops | FileCheck %s
// A result is not stored if its readers are faster at making it themselves of what
// its kernel reads and stores.

// What follows a product is part of its kernel first: both %d and %m would be
// stored for the row kernel, which reads %w as well.
// CHECK-LABEL: func @weighted
// CHECK:         %[[D:.+]] = graph.fused <contraction> (%arg0, %arg1) : {{.*}} -> tensor<512x256xf32>
// CHECK-NOT:       graph.mul
// CHECK:         graph.fused <row> (%[[D]], %arg2)
// CHECK:           graph.mul
// CHECK:           graph.reduce
func.func @weighted(%x: tensor<512x64xf32>, %y: tensor<64x256xf32>,
    %w: tensor<512x256xf32>) -> tensor<512x256xf32> {
  %d = graph.matmul %x, %y
    : (tensor<512x64xf32>, tensor<64x256xf32>) -> tensor<512x256xf32>
  %m = graph.mul %d, %w
    : (tensor<512x256xf32>, tensor<512x256xf32>) -> tensor<512x256xf32>
  %s = graph.reduce <sum> %m [1] : (tensor<512x256xf32>) -> tensor<512xf32>
  %c = graph.reshape %s : (tensor<512xf32>) -> tensor<512x1xf32>
  %r = graph.broadcast %c : (tensor<512x1xf32>) -> tensor<512x256xf32>
  %e = graph.sub %d, %r
    : (tensor<512x256xf32>, tensor<512x256xf32>) -> tensor<512x256xf32>
  %z = graph.mul %e, %w
    : (tensor<512x256xf32>, tensor<512x256xf32>) -> tensor<512x256xf32>
  return %z : tensor<512x256xf32>
}

// Exponentials are faster to read.
// CHECK-LABEL: func @costly
// CHECK:         %[[E:.+]]:2 = graph.fused <row> (%arg0) : {{.*}} -> (tensor<512x256xf32>, tensor<256xf32>)
// CHECK:         %[[S:.+]] = graph.fused <row> (%[[E]]#1)
// CHECK:         graph.fused <pointwise> (%[[S]], %[[E]]#0)
func.func @costly(%x: tensor<512x256xbf16>) -> tensor<512x256xbf16> {
  %a = graph.cast %x : (tensor<512x256xbf16>) -> tensor<512x256xf32>
  %e = graph.exp %a : (tensor<512x256xf32>) -> tensor<512x256xf32>
  %s = graph.reduce <sum> %e [0] : (tensor<512x256xf32>) -> tensor<256xf32>
  %t = graph.reduce <sum> %s [0] : (tensor<256xf32>) -> tensor<f32>
  %r = graph.broadcast %t : (tensor<f32>) -> tensor<512x256xf32>
  %d = graph.div %e, %r
    : (tensor<512x256xf32>, tensor<512x256xf32>) -> tensor<512x256xf32>
  %y = graph.cast %d : (tensor<512x256xf32>) -> tensor<512x256xbf16>
  return %y : tensor<512x256xbf16>
}
