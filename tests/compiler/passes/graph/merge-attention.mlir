// RUN: tcc-opt %s --tcc-merge-attention --tcc-simplify | FileCheck %s

// The gradients are one op. What each of them is rounded, transposed and joined to
// is made of its result, so nothing is left to be copied. The normalizer is a result
// of the attention.
// CHECK-LABEL: func @joined
// CHECK:         %[[Y:.+]], %[[N:.+]] = graph.attention %[[Q:.+]], %[[K:[^ ]+]], %[[V:[^ ]+]] {
// CHECK-NOT:     graph.attention_normalizer
// CHECK:         %[[A:.+]] = graph.attention_gradient <all> %[[Q]], %[[K]], %[[V]], %{{.+}}, %[[N]], %{{.+}} -> tensor<3x2x4x8x16xf32>
// CHECK:         %[[C:.+]] = graph.cast %[[A]]
// CHECK:         %[[T:.+]] = graph.transpose %[[C]] [1, 3, 0, 2, 4] {{.*}} -> tensor<2x8x3x4x16xbf16>
// CHECK:         %[[R:.+]] = graph.reshape %[[T]] {{.*}} -> tensor<2x8x12x16xbf16>
// CHECK:         return %[[Y]], %[[R]]
!m = tensor<2x4x8x16xbf16>
!w = tensor<2x4x8x16xf32>
!r = tensor<2x4x8x1xf32>
!t = tensor<2x8x4x16xbf16>
func.func @joined(%q: !m, %k: !m, %v: !m, %d: !m, %s: !r)
    -> (!w, tensor<2x8x12x16xbf16>) {
  %y = graph.attention %q, %k, %v {scale = 0.25 : f64} : (!m, !m, !m) -> !w
  %n = graph.attention_normalizer %q, %k {scale = 0.25 : f64} : (!m, !m) -> !r
  %0 = graph.attention_gradient <query> %q, %k, %v, %d, %n, %s {scale = 0.25 : f64}
    : (!m, !m, !m, !m, !r, !r) -> !w
  %1 = graph.attention_gradient <key> %q, %k, %v, %d, %n, %s {scale = 0.25 : f64}
    : (!m, !m, !m, !m, !r, !r) -> !w
  %2 = graph.attention_gradient <value> %q, %k, %v, %d, %n, %s {scale = 0.25 : f64}
    : (!m, !m, !m, !m, !r, !r) -> !w
  %3 = graph.cast %0 : (!w) -> !m
  %4 = graph.cast %1 : (!w) -> !m
  %5 = graph.cast %2 : (!w) -> !m
  %6 = graph.transpose %3 [0, 2, 1, 3] : (!m) -> !t
  %7 = graph.transpose %4 [0, 2, 1, 3] : (!m) -> !t
  %8 = graph.transpose %5 [0, 2, 1, 3] : (!m) -> !t
  %9 = graph.concat %6, %7, %8 {axis = 2} : (!t, !t, !t) -> tensor<2x8x12x16xbf16>
  return %y, %9 : !w, tensor<2x8x12x16xbf16>
}

// Read apart, they are parts of one tensor.
// CHECK-LABEL: func @apart
// CHECK:         %[[A:.+]] = graph.attention_gradient <all> {{.*}} -> tensor<3x9x16xf32>
// CHECK-NOT:     graph.attention_gradient
// CHECK-COUNT-3: graph.slice
func.func @apart(%x: tensor<9x16xf16>, %s: tensor<9x1xf32>)
    -> (tensor<9x16xf32>, tensor<9x16xf32>, tensor<9x16xf32>) {
  %0 = graph.attention_gradient <query> %x, %x, %x, %x, %s, %s {scale = 1.0 : f64}
    : (tensor<9x16xf16>, tensor<9x16xf16>, tensor<9x16xf16>, tensor<9x16xf16>,
       tensor<9x1xf32>, tensor<9x1xf32>) -> tensor<9x16xf32>
  %1 = graph.attention_gradient <key> %x, %x, %x, %x, %s, %s {scale = 1.0 : f64}
    : (tensor<9x16xf16>, tensor<9x16xf16>, tensor<9x16xf16>, tensor<9x16xf16>,
       tensor<9x1xf32>, tensor<9x1xf32>) -> tensor<9x16xf32>
  %2 = graph.attention_gradient <value> %x, %x, %x, %x, %s, %s {scale = 1.0 : f64}
    : (tensor<9x16xf16>, tensor<9x16xf16>, tensor<9x16xf16>, tensor<9x16xf16>,
       tensor<9x1xf32>, tensor<9x1xf32>) -> tensor<9x16xf32>
  %3 = graph.neg %1 : (tensor<9x16xf32>) -> tensor<9x16xf32>
  return %0, %3, %2 : tensor<9x16xf32>, tensor<9x16xf32>, tensor<9x16xf32>
}

// A scale of its own is another attention; queries of other extents than keys are
// other blocks.
// CHECK-LABEL: func @other
// CHECK:         graph.attention_normalizer
// CHECK-NOT:     <all>
func.func @other(%q: tensor<4x16xf16>, %k: tensor<9x16xf16>, %s: tensor<4x1xf32>)
    -> (tensor<4x16xf32>, tensor<4x16xf32>, tensor<9x16xf32>, tensor<9x16xf32>) {
  %y = graph.attention %q, %k, %k {scale = 0.5 : f64}
    : (tensor<4x16xf16>, tensor<9x16xf16>, tensor<9x16xf16>) -> tensor<4x16xf32>
  %n = graph.attention_normalizer %q, %k {scale = 1.0 : f64}
    : (tensor<4x16xf16>, tensor<9x16xf16>) -> tensor<4x1xf32>
  %0 = graph.attention_gradient <query> %q, %k, %k, %q, %n, %s {scale = 1.0 : f64}
    : (tensor<4x16xf16>, tensor<9x16xf16>, tensor<9x16xf16>, tensor<4x16xf16>,
       tensor<4x1xf32>, tensor<4x1xf32>) -> tensor<4x16xf32>
  %1 = graph.attention_gradient <key> %q, %k, %k, %q, %n, %s {scale = 1.0 : f64}
    : (tensor<4x16xf16>, tensor<9x16xf16>, tensor<9x16xf16>, tensor<4x16xf16>,
       tensor<4x1xf32>, tensor<4x1xf32>) -> tensor<9x16xf32>
  %2 = graph.attention_gradient <value> %q, %k, %k, %q, %n, %s {scale = 1.0 : f64}
    : (tensor<4x16xf16>, tensor<9x16xf16>, tensor<9x16xf16>, tensor<4x16xf16>,
       tensor<4x1xf32>, tensor<4x1xf32>) -> tensor<9x16xf32>
  return %y, %0, %1, %2
    : tensor<4x16xf32>, tensor<4x16xf32>, tensor<9x16xf32>, tensor<9x16xf32>
}

// As many blocks sum a mask's gradient as keep a device busy: those of 64 scores
// that read an element each.
// CHECK-LABEL: func @mask
// CHECK:         %[[G:.+]] = graph.attention_gradient <mask> {{.*}} -> tensor<64x1x128x128xf32>
// CHECK:         %[[S:.+]] = graph.reduce <sum> %[[G]] [0]
// CHECK:         graph.reshape %[[S]] {{.*}} -> tensor<1x1x128x128xf32>
func.func @mask(%x: tensor<100x128x16xf16>, %m: tensor<1x128x128xf32>,
    %s: tensor<100x128x1xf32>) -> tensor<1x1x128x128xf32> {
  %0 = graph.attention_gradient <mask> %x, %x, %x, %x, %s, %s mask %m {scale = 1.0 : f64}
    : (tensor<100x128x16xf16>, tensor<100x128x16xf16>, tensor<100x128x16xf16>,
       tensor<100x128x16xf16>, tensor<100x128x1xf32>, tensor<100x128x1xf32>,
       tensor<1x128x128xf32>) -> tensor<1x1x128x128xf32>
  return %0 : tensor<1x1x128x128xf32>
}
