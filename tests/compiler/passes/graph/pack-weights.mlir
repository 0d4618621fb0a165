// RUN: tcc-opt %s --tcc-pack-weights | FileCheck %s

// Panels of 64 columns; a weight that two products read is packed once.
// CHECK-LABEL: func @once
// CHECK:         %[[W:.+]] = graph.weight "w"
// CHECK:         %[[R:.+]] = graph.reshape %[[W]] {{.*}} -> tensor<8x2x64xf32>
// CHECK:         %[[P:.+]] = graph.transpose %[[R]] [1, 0, 2]
// CHECK-NOT:     graph.transpose
// CHECK:         graph.matmul %{{.+}}, %[[P]] {packed_rhs}
// CHECK:         graph.matmul %{{.+}}, %[[P]] {packed_rhs}
func.func @once(%x: tensor<2x8xf32>, %y: tensor<3x8xf32>)
    -> (tensor<2x128xf32>, tensor<3x128xf32>) {
  %w = graph.weight "w" : tensor<8x128xf32>
  %a = graph.matmul %x, %w
    : (tensor<2x8xf32>, tensor<8x128xf32>) -> tensor<2x128xf32>
  %b = graph.matmul %y, %w
    : (tensor<3x8xf32>, tensor<8x128xf32>) -> tensor<3x128xf32>
  return %a, %b : tensor<2x128xf32>, tensor<3x128xf32>
}

// The transpose of a weight is part of the packing; missing columns are zeros,
// and a single panel is no wider than it need be.
// CHECK-LABEL: func @transposed
// CHECK:         graph.pad {{.*}}high = array<i64: 8, 0>
// CHECK:         graph.reshape {{.*}} -> tensor<1x48x8xf32>
// CHECK:         graph.transpose {{.*}} [0, 2, 1]
// CHECK:         graph.matmul {{.*}} {packed_rhs} {{.*}} -> tensor<2x40xf32>
func.func @transposed(%x: tensor<2x8xf32>) -> tensor<2x40xf32> {
  %w = graph.weight "w" : tensor<40x8xf32>
  %a = graph.matmul %x, %w {transpose_rhs}
    : (tensor<2x8xf32>, tensor<40x8xf32>) -> tensor<2x40xf32>
  return %a : tensor<2x40xf32>
}

// Rows of the embedding are read by index, from the panels: it is stored once.
// CHECK-LABEL: func @tied_embedding
// CHECK:         %[[PANELS:.+]] = graph.transpose {{.*}} -> tensor<2x8x64xf32>
// CHECK:         %[[COLUMNS:.+]] = graph.transpose %[[PANELS]] [0, 2, 1]
// CHECK:         %[[ROWS:.+]] = graph.reshape %[[COLUMNS]] {{.*}} -> tensor<128x8xf32>
// CHECK:         %[[TABLE:.+]] = graph.slice %[[ROWS]] {{.*}} -> tensor<100x8xf32>
// CHECK:         %[[E:.+]] = graph.gather %[[TABLE]]
// CHECK:         graph.matmul %[[E]], %[[PANELS]] {packed_rhs}
func.func @tied_embedding(%i: tensor<2xi64>) -> tensor<2x100xf32> {
  %w = graph.weight "embedding" : tensor<100x8xf32>
  %e = graph.gather %w, %i {axis = 0}
    : (tensor<100x8xf32>, tensor<2xi64>) -> tensor<2x8xf32>
  %a = graph.matmul %e, %w {transpose_rhs}
    : (tensor<2x8xf32>, tensor<100x8xf32>) -> tensor<2x100xf32>
  return %a : tensor<2x100xf32>
}

// CHECK-LABEL: func @activations_stay
// CHECK-NOT:     packed_rhs
func.func @activations_stay(%x: tensor<2x8xf32>, %w: tensor<8x64xf32>)
    -> tensor<2x64xf32> {
  %a = graph.matmul %x, %w
    : (tensor<2x8xf32>, tensor<8x64xf32>) -> tensor<2x64xf32>
  return %a : tensor<2x64xf32>
}

// Panels of 16 columns for each group.
// CHECK-LABEL: func @filters
// CHECK:         graph.reshape {{.*}} -> tensor<2x7x6xf32>
// CHECK:         graph.pad {{.*}}high = array<i64: 0, 9, 0>
// CHECK:         graph.reshape {{.*}} -> tensor<2x1x16x6xf32>
// CHECK:         graph.transpose {{.*}} [0, 1, 3, 2]
// CHECK:         graph.conv {{.*}}packed_filter
func.func @filters(%x: tensor<1x16x4xf32>) -> tensor<1x16x14xf32> {
  %w = graph.weight "w" : tensor<14x3x2xf32>
  %c = graph.conv %x, %w {channels_last, filters = 14, groups = 2,
    window = array<i64: 3>, strides = array<i64: 1>, pad_low = array<i64: 1>,
    pad_high = array<i64: 1>, dilations = array<i64: 1>}
    : (tensor<1x16x4xf32>, tensor<14x3x2xf32>) -> tensor<1x16x14xf32>
  return %c : tensor<1x16x14xf32>
}

// Nothing is contracted in a depthwise convolution.
// CHECK-LABEL: func @depthwise
// CHECK:         graph.reshape {{.*}} -> tensor<4x3xf32>
// CHECK:         graph.transpose {{.*}} [1, 0]
// CHECK:         graph.conv {{.*}}packed_filter
func.func @depthwise(%x: tensor<1x16x4xf32>) -> tensor<1x16x4xf32> {
  %w = graph.weight "w" : tensor<4x3x1xf32>
  %c = graph.conv %x, %w {channels_last, filters = 4, groups = 4,
    window = array<i64: 3>, strides = array<i64: 1>, pad_low = array<i64: 1>,
    pad_high = array<i64: 1>, dilations = array<i64: 1>}
    : (tensor<1x16x4xf32>, tensor<4x3x1xf32>) -> tensor<1x16x4xf32>
  return %c : tensor<1x16x4xf32>
}

// Vectors run along the filters of several groups.
// CHECK-LABEL: func @narrow_groups
// CHECK:         graph.reshape {{.*}} -> tensor<8x12xf32>
// CHECK:         graph.transpose {{.*}} [1, 0]
// CHECK:         graph.conv {{.*}}packed_filter
func.func @narrow_groups(%x: tensor<1x16x8xf32>) -> tensor<1x16x8xf32> {
  %w = graph.weight "w" : tensor<8x3x4xf32>
  %c = graph.conv %x, %w {channels_last, filters = 8, groups = 2,
    window = array<i64: 3>, strides = array<i64: 1>, pad_low = array<i64: 1>,
    pad_high = array<i64: 1>, dilations = array<i64: 1>}
    : (tensor<1x16x8xf32>, tensor<8x3x4xf32>) -> tensor<1x16x8xf32>
  return %c : tensor<1x16x8xf32>
}

// CHECK-LABEL: func @channels_first_stay
// CHECK-NOT:     packed_filter
func.func @channels_first_stay(%x: tensor<1x4x16xf32>) -> tensor<1x4x16xf32> {
  %w = graph.weight "w" : tensor<4x1x3xf32>
  %c = graph.conv %x, %w {filters = 4, groups = 4, window = array<i64: 3>,
    strides = array<i64: 1>, pad_low = array<i64: 1>, pad_high = array<i64: 1>,
    dilations = array<i64: 1>}
    : (tensor<1x4x16xf32>, tensor<4x1x3xf32>) -> tensor<1x4x16xf32>
  return %c : tensor<1x4x16xf32>
}
