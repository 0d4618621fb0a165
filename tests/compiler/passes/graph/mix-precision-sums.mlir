// RUN: tcc-opt %s --split-input-file --tcc-set-target=name=cuda --tcc-mix-precision --tcc-simplify | FileCheck %s
// A GPU's libraries store products, and add to them, in one narrow type.

// The bias is narrow as the result is; what follows computes in f32.
// CHECK-LABEL: func @bias
// CHECK:         %[[B:.+]] = graph.weight "b"
// CHECK:         %[[N:.+]] = graph.cast %[[B]] : (tensor<8xf32>) -> tensor<8xbf16>
// CHECK:         %[[Y:.+]] = graph.matmul
// CHECK:         %[[A:.+]] = graph.add %[[Y]]
// CHECK:         %[[S:.+]] = graph.cast %[[A]] : {{.*}} -> tensor<4x8xbf16>
// CHECK:         %[[W:.+]] = graph.cast %[[S]] : {{.*}} -> tensor<4x8xf32>
// CHECK:         graph.exp %[[W]]
func.func @bias(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %w = graph.weight "w" : tensor<8x8xf32>
  %b = graph.weight "b" : tensor<8xf32>
  %y = graph.matmul %x, %w
    : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %c = graph.broadcast %b : (tensor<8xf32>) -> tensor<4x8xf32>
  %a = graph.add %y, %c : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %e = graph.exp %a : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %z = graph.matmul %e, %w
    : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  return %z : tensor<4x8xf32>
}

// -----

// What leaves the function keeps its type.
// CHECK-LABEL: func @result
// CHECK:         %[[Y:.+]] = graph.matmul {{.*}} -> tensor<4x8xf32>
// CHECK:         return %[[Y]]
func.func @result(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %w = graph.weight "w" : tensor<8x8xf32>
  %y = graph.matmul %x, %w
    : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// -----

// Nor is narrow what leads to no other product: a gradient that an update reads.
// CHECK-LABEL: func @update
// CHECK:         %[[G:.+]] = graph.matmul {{.*}} -> tensor<8x8xf32>
// CHECK-NEXT:    graph.sub %{{.+}}, %[[G]]
func.func @update(%x: tensor<16x8xf32>, %dy: tensor<16x8xf32>,
                  %w: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %g = graph.matmul %x, %dy {transpose_lhs}
    : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
  %n = graph.sub %w, %g : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %n : tensor<8x8xf32>
}

// -----

// A mask has elements that bf16 has not: it is added in f32.
// CHECK-LABEL: func @mask
// CHECK:         %[[Y:.+]] = graph.matmul
// CHECK:         %[[S:.+]] = graph.cast %[[Y]] : {{.*}} -> tensor<4x8xbf16>
// CHECK:         %[[W:.+]] = graph.cast %[[S]] : {{.*}} -> tensor<4x8xf32>
// CHECK:         graph.add %[[W]], %arg1
func.func @mask(%x: tensor<4x8xf32>, %m: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %w = graph.weight "w" : tensor<8x8xf32>
  %y = graph.matmul %x, %w
    : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %a = graph.add %y, %m : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %s = graph.softmax %a {axis = 1} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %z = graph.matmul %s, %w
    : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  return %z : tensor<4x8xf32>
}

// -----

// But for the gradient of a filter: libraries store it as they read.
// CHECK-LABEL: func @filter_gradient
// CHECK:         %[[G:.+]] = graph.conv_filter_gradient {{.*}}bf16>) -> tensor<6x3x4xf32>
// CHECK:         %[[S:.+]] = graph.cast %[[G]] : {{.*}} -> tensor<6x3x4xbf16>
// CHECK:         %[[W:.+]] = graph.cast %[[S]] : {{.*}} -> tensor<6x3x4xf32>
// CHECK:         graph.sub %{{.+}}, %[[W]]
func.func @filter_gradient(%x: tensor<2x9x4xf32>, %d: tensor<2x9x6xf32>,
                           %w: tensor<6x3x4xf32>) -> tensor<6x3x4xf32> {
  %g = graph.conv_filter_gradient %x, %d {groups = 1 : i64, window = array<i64: 3>,
    strides = array<i64: 1>, pad_low = array<i64: 1>, dilations = array<i64: 1>}
    : (tensor<2x9x4xf32>, tensor<2x9x6xf32>) -> tensor<6x3x4xf32>
  %n = graph.sub %w, %g : (tensor<6x3x4xf32>, tensor<6x3x4xf32>) -> tensor<6x3x4xf32>
  return %n : tensor<6x3x4xf32>
}

// -----

// An activation ends what a library does: what is added behind it is added in f32.
// CHECK-LABEL: func @convolution
// CHECK:         %[[Y:.+]] = graph.conv {{.*}} -> tensor<2x6x9xf32>
// CHECK:         %[[R:.+]] = graph.relu %[[Y]]
// CHECK:         %[[S:.+]] = graph.cast %[[R]] : {{.*}} -> tensor<2x6x9xbf16>
// CHECK:         %[[W:.+]] = graph.cast %[[S]] : {{.*}} -> tensor<2x6x9xf32>
// CHECK:         graph.add %[[W]], %arg2
func.func @convolution(%x: tensor<2x6x9xf32>, %f: tensor<6x6x3xf32>,
                       %b: tensor<2x6x9xf32>) -> tensor<2x6x9xf32> {
  %y = graph.conv %x, %f {groups = 1 : i64, filters = 6 : i64, window = array<i64: 3>,
    strides = array<i64: 1>, pad_low = array<i64: 1>, pad_high = array<i64: 1>,
    dilations = array<i64: 1>} : (tensor<2x6x9xf32>, tensor<6x6x3xf32>) -> tensor<2x6x9xf32>
  %r = graph.relu %y : (tensor<2x6x9xf32>) -> tensor<2x6x9xf32>
  %a = graph.add %r, %b : (tensor<2x6x9xf32>, tensor<2x6x9xf32>) -> tensor<2x6x9xf32>
  %z = graph.conv %a, %f {groups = 1 : i64, filters = 6 : i64, window = array<i64: 3>,
    strides = array<i64: 1>, pad_low = array<i64: 1>, pad_high = array<i64: 1>,
    dilations = array<i64: 1>} : (tensor<2x6x9xf32>, tensor<6x6x3xf32>) -> tensor<2x6x9xf32>
  return %z : tensor<2x6x9xf32>
}
