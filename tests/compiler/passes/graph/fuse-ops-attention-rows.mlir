// RUN: tcc-opt %s --tcc-set-target=name=cuda --tcc-fuse-ops --tcc-verify-fusion | FileCheck %s

// Attention stores its rows once, where a transpose moves them: the sum reads them
// there. The logarithms of the sums of weights are a result of their own shape.
// CHECK-LABEL: func @read_where_stored
// CHECK:         %[[Y:.+]]:2 = graph.fused <attention> {{.*}} -> (tensor<2x4x64x1xf32>, tensor<2x64x4x16xbf16>)
// CHECK:         graph.fused <row> (%[[Y]]#1)
// CHECK-NOT:     graph.fused
// CHECK:         return
func.func @read_where_stored(%q: tensor<2x4x64x16xbf16>)
    -> (tensor<2x64x4x16xbf16>, tensor<2x4x64xf32>, tensor<2x4x64x1xf32>) {
  %y, %n = graph.attention %q, %q, %q {scale = 2.5e-01 : f64}
    : (tensor<2x4x64x16xbf16>, tensor<2x4x64x16xbf16>, tensor<2x4x64x16xbf16>)
    -> (tensor<2x4x64x16xf32>, tensor<2x4x64x1xf32>)
  %c = graph.cast %y : (tensor<2x4x64x16xf32>) -> tensor<2x4x64x16xbf16>
  %w = graph.cast %c : (tensor<2x4x64x16xbf16>) -> tensor<2x4x64x16xf32>
  %s = graph.reduce <sum> %w [3] : (tensor<2x4x64x16xf32>) -> tensor<2x4x64xf32>
  %t = graph.transpose %c [0, 2, 1, 3]
    : (tensor<2x4x64x16xbf16>) -> tensor<2x64x4x16xbf16>
  return %t, %s, %n
    : tensor<2x64x4x16xbf16>, tensor<2x4x64xf32>, tensor<2x4x64x1xf32>
}

// No kernel would move them again for who reads them whole.
// CHECK-LABEL: func @returned
// CHECK:         graph.fused <attention> {{.*}} -> (tensor<{{.*}}>, tensor<{{.*}}>)
// CHECK-NOT:     graph.fused
// CHECK:         return
func.func @returned(%q: tensor<2x4x64x16xbf16>)
    -> (tensor<2x64x4x16xf32>, tensor<2x4x64x16xf32>) {
  %y = graph.attention %q, %q, %q {scale = 2.5e-01 : f64}
    : (tensor<2x4x64x16xbf16>, tensor<2x4x64x16xbf16>, tensor<2x4x64x16xbf16>)
    -> tensor<2x4x64x16xf32>
  %t = graph.transpose %y [0, 2, 1, 3]
    : (tensor<2x4x64x16xf32>) -> tensor<2x64x4x16xf32>
  return %t, %y : tensor<2x64x4x16xf32>, tensor<2x4x64x16xf32>
}
