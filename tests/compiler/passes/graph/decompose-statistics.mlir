// RUN: tcc-opt %s --tcc-decompose | FileCheck %s
// RUN: tcc-opt %s --tcc-decompose --tcc-simplify --tcc-split-reductions --tcc-set-target=name=cuda --tcc-fuse-ops | FileCheck %s --check-prefix=FUSED

// A long channel has a mean and a mean square for each part, combined afterwards: x is
// read by one kernel.
// CHECK-LABEL: func @parts
// CHECK:         graph.reduce <sum> %arg0 [3] : (tensor<4x8x6x48xf32>) -> tensor<4x8x6xf32>
// CHECK:         graph.reduce <sum> %{{.+}} [3] : (tensor<4x8x6x48xf32>) -> tensor<4x8x6xf32>
// CHECK:         graph.reduce <sum> %{{.+}} [0, 2] : (tensor<4x8x6xf32>) -> tensor<8xf32>
// CHECK:         graph.reduce <sum> %{{.+}} [0, 2] : (tensor<4x8x6xf32>) -> tensor<8xf32>
// FUSED-LABEL: func @parts
// FUSED:         graph.fused <row> (%arg0) : (tensor<4x8x6x48xf32>) -> (tensor<4x8x6xf32>, tensor<4x8x6xf32>)
// FUSED-NOT:     %arg0
// FUSED:         return
func.func @parts(%x: tensor<4x8x6x48xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %mean, %variance = graph.batch_statistics %x
    : (tensor<4x8x6x48xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  return %mean, %variance : tensor<8xf32>, tensor<8xf32>
}

// A short one has no parts.
// CHECK-LABEL: func @one_part
// CHECK:         graph.reduce <sum> %arg0 [0, 2] : (tensor<4x8x6xf32>) -> tensor<8xf32>
// CHECK:         graph.reduce <sum> %{{.+}} [0, 2] : (tensor<4x8x6xf32>) -> tensor<8xf32>
func.func @one_part(%x: tensor<4x8x6xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %mean, %variance = graph.batch_statistics %x
    : (tensor<4x8x6xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  return %mean, %variance : tensor<8xf32>, tensor<8xf32>
}
