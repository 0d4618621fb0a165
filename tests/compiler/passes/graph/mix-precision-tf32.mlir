// RUN: tcc-opt %s --tcc-mix-precision=type=tf32 | FileCheck %s

// Products of f32 that a library has may round what they read; narrow ones, and
// attention, whose kernel is our own, stay.
// CHECK-LABEL: func @products
// CHECK:         graph.matmul %{{.+}}, %{{.+}} {tf32} : (tensor<4x8xf32>
// CHECK-NEXT:    graph.conv {{.*}}, tf32, {{.*}} : (tensor<1x3x8x8xf32>
// CHECK-NEXT:    graph.cast
// CHECK-NEXT:    graph.matmul %{{.+}}, %{{.+}} : (tensor<4x8xbf16>
// CHECK-NEXT:    graph.attention
// CHECK-NOT:     tf32
// CHECK:         return
func.func @products(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>,
                    %v: tensor<8x8xbf16>, %i: tensor<1x3x8x8xf32>,
                    %f: tensor<5x3x3x3xf32>, %q: tensor<2x4x8xf32>)
    -> (tensor<4x8xf32>, tensor<1x5x6x6xf32>, tensor<4x8xbf16>,
        tensor<2x4x8xf32>) {
  %0 = graph.matmul %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %1 = graph.conv %i, %f {filters = 5, groups = 1, window = array<i64: 3, 3>,
      strides = array<i64: 1, 1>, pad_low = array<i64: 0, 0>,
      pad_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>}
    : (tensor<1x3x8x8xf32>, tensor<5x3x3x3xf32>) -> tensor<1x5x6x6xf32>
  %2 = graph.cast %x : (tensor<4x8xf32>) -> tensor<4x8xbf16>
  %3 = graph.matmul %2, %v : (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xbf16>
  %4 = graph.attention %q, %q, %q {scale = 1.0 : f64}
    : (tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  return %0, %1, %3, %4 : tensor<4x8xf32>, tensor<1x5x6x6xf32>, tensor<4x8xbf16>,
                          tensor<2x4x8xf32>
}
