// RUN: tcc-opt %s --tcc-split-reductions | FileCheck %s

// The last of the reduced axes goes first, and of what is left again.
// CHECK-LABEL: func @long
// CHECK:         %[[A:.+]] = graph.reduce <sum> %{{.+}} [2] : (tensor<32x112x112x64xf32>) -> tensor<32x112x64xf32>
// CHECK:         %[[B:.+]] = graph.reduce <sum> %[[A]] [1]{{.*}} -> tensor<32x64xf32>
// CHECK:         %[[C:.+]] = graph.reduce <sum> %[[B]] [0]{{.*}} -> tensor<64xf32>
// CHECK:         return %[[C]]
func.func @long(%x: tensor<32x112x112x64xf32>) -> tensor<64xf32> {
  %0 = graph.reduce <sum> %x [0, 1, 2] : (tensor<32x112x112x64xf32>) -> tensor<64xf32>
  return %0 : tensor<64xf32>
}

// Both columns are as short as can be.
// CHECK-LABEL: func @one_sample
// CHECK:         graph.reduce <max> %{{.+}} [2]{{.*}} -> tensor<1x256x8xf32>
// CHECK:         graph.reduce <max> %{{.+}} [0, 1]
func.func @one_sample(%x: tensor<1x256x2x8xf32>) -> tensor<8xf32> {
  %0 = graph.reduce <max> %x [0, 1, 2] : (tensor<1x256x2x8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// The parts are not rounded.
// CHECK-LABEL: func @narrow
// CHECK:         graph.reduce <sum> %{{.+}} [1] : (tensor<64x64x8xf32>)
// CHECK:         graph.reduce <sum> %{{.+}} [0] : (tensor<64x8xf32>)
// CHECK:         graph.cast {{.*}} -> tensor<8xbf16>
func.func @narrow(%x: tensor<64x64x8xbf16>) -> tensor<8xbf16> {
  %0 = graph.reduce <sum> %x [0, 1] : (tensor<64x64x8xbf16>) -> tensor<8xbf16>
  return %0 : tensor<8xbf16>
}

// A long axis is cut into panels of at most 32 elements, and their sums again.
// CHECK-LABEL: func @panels
// CHECK:         %[[A:.+]] = graph.reshape %{{.+}} -> tensor<4x600x32x64xf32>
// CHECK:         %[[B:.+]] = graph.reduce <sum> %[[A]] [2]{{.*}} -> tensor<4x600x64xf32>
// CHECK:         %[[C:.+]] = graph.reshape %[[B]]{{.*}} -> tensor<4x20x30x64xf32>
// CHECK:         %[[D:.+]] = graph.reduce <sum> %[[C]] [2]{{.*}} -> tensor<4x20x64xf32>
// CHECK:         graph.reduce <sum> %[[D]] [0, 1]{{.*}} -> tensor<64xf32>
func.func @panels(%x: tensor<4x19200x64xf32>) -> tensor<64xf32> {
  %0 = graph.reduce <sum> %x [0, 1] : (tensor<4x19200x64xf32>) -> tensor<64xf32>
  return %0 : tensor<64xf32>
}

// A short column, one of a prime number of elements, and rows stay.
// CHECK-LABEL: func @kept
// CHECK:         graph.reduce <sum> %{{.+}} [0, 1]{{.*}} -> tensor<64xf32>
// CHECK:         graph.reduce <sum> %{{.+}} [0]{{.*}} -> tensor<64xf32>
// CHECK:         graph.reduce <sum> %{{.+}} [0, 2]{{.*}} -> tensor<64xf32>
func.func @kept(%x: tensor<7x7x64xf32>, %y: tensor<4099x64xf32>, %z: tensor<64x64x64xf32>)
    -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) {
  %0 = graph.reduce <sum> %x [0, 1] : (tensor<7x7x64xf32>) -> tensor<64xf32>
  %1 = graph.reduce <sum> %y [0] : (tensor<4099x64xf32>) -> tensor<64xf32>
  %2 = graph.reduce <sum> %z [0, 2] : (tensor<64x64x64xf32>) -> tensor<64xf32>
  return %0, %1, %2 : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>
}
