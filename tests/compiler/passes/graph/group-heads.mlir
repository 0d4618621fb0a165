// RUN: tcc-opt %s --tcc-group-heads | FileCheck %s
// Heads that share a key and value become rows; a mask of all heads repeats.

// CHECK-LABEL: func @grouped
// CHECK-SAME:    %[[Q:[^:]+]]: {{.*}}, %[[M:[^:]+]]: tensor<1x1x5x8xf32>
// CHECK-DAG:     %[[ROWS:.+]] = graph.reshape %[[Q]] {{.*}} -> tensor<1x4x15x64xf32>
// CHECK-DAG:     %[[MASKS:.+]] = graph.broadcast %[[M]] {{.*}} -> tensor<1x3x5x8xf32>
// CHECK-DAG:     %[[MASK:.+]] = graph.reshape %[[MASKS]] {{.*}} -> tensor<1x1x15x8xf32>
// CHECK:         %[[Y:.+]] = graph.attention %[[ROWS]], %{{.*}} mask %[[MASK]]
// CHECK-SAME:    (tensor<1x4x15x64xf32>, tensor<1x4x8x64xf32>, tensor<1x4x8x32xf32>
// CHECK:         graph.reshape %[[Y]] {{.*}} -> tensor<1x12x5x32xf32>
func.func @grouped(%q: tensor<1x12x5x64xf32>, %k: tensor<1x4x8x64xf32>,
                   %v: tensor<1x4x8x32xf32>, %m: tensor<1x1x5x8xf32>)
    -> tensor<1x12x5x32xf32> {
  %0 = graph.reshape %k : (tensor<1x4x8x64xf32>) -> tensor<1x4x1x8x64xf32>
  %1 = graph.broadcast %0 : (tensor<1x4x1x8x64xf32>) -> tensor<1x4x3x8x64xf32>
  %2 = graph.reshape %1 : (tensor<1x4x3x8x64xf32>) -> tensor<1x12x8x64xf32>
  %3 = graph.reshape %v : (tensor<1x4x8x32xf32>) -> tensor<1x4x1x8x32xf32>
  %4 = graph.broadcast %3 : (tensor<1x4x1x8x32xf32>) -> tensor<1x4x3x8x32xf32>
  %5 = graph.reshape %4 : (tensor<1x4x3x8x32xf32>) -> tensor<1x12x8x32xf32>
  %6 = graph.broadcast %m : (tensor<1x1x5x8xf32>) -> tensor<1x12x5x8xf32>
  %y = graph.attention %q, %2, %5 mask %6 {scale = 0.125 : f64}
    : (tensor<1x12x5x64xf32>, tensor<1x12x8x64xf32>, tensor<1x12x8x32xf32>,
       tensor<1x12x5x8xf32>) -> tensor<1x12x5x32xf32>
  return %y : tensor<1x12x5x32xf32>
}

// A key that all heads share needs no reshape.
// CHECK-LABEL: func @one_key
// CHECK:         graph.attention {{.*}} -> tensor<1x1x60x64xf32>
func.func @one_key(%q: tensor<1x12x5x64xf32>, %k: tensor<1x1x8x64xf32>)
    -> tensor<1x12x5x64xf32> {
  %0 = graph.broadcast %k : (tensor<1x1x8x64xf32>) -> tensor<1x12x8x64xf32>
  %y = graph.attention %q, %0, %0 {scale = 0.125 : f64}
    : (tensor<1x12x5x64xf32>, tensor<1x12x8x64xf32>, tensor<1x12x8x64xf32>)
    -> tensor<1x12x5x64xf32>
  return %y : tensor<1x12x5x64xf32>
}

// Heads that are repeated as a whole, [a b a b], are no groups.
// CHECK-LABEL: func @tiled
// CHECK:         graph.attention {{.*}} -> tensor<1x12x5x64xf32>
func.func @tiled(%q: tensor<1x12x5x64xf32>, %k: tensor<1x1x4x8x64xf32>)
    -> tensor<1x12x5x64xf32> {
  %0 = graph.broadcast %k
    : (tensor<1x1x4x8x64xf32>) -> tensor<1x3x4x8x64xf32>
  %1 = graph.reshape %0 : (tensor<1x3x4x8x64xf32>) -> tensor<1x12x8x64xf32>
  %y = graph.attention %q, %1, %1 {scale = 0.125 : f64}
    : (tensor<1x12x5x64xf32>, tensor<1x12x8x64xf32>, tensor<1x12x8x64xf32>)
    -> tensor<1x12x5x64xf32>
  return %y : tensor<1x12x5x64xf32>
}

// A mask of two heads that four have in turn is none of the groups'.
// CHECK-LABEL: func @repeated_mask
// CHECK:         graph.attention {{.*}} -> tensor<1x4x8x16xf32>
func.func @repeated_mask(%q: tensor<1x4x8x16xf32>, %k: tensor<1x2x8x16xf32>,
    %m: tensor<1x2x8x8xf32>) -> tensor<1x4x8x16xf32> {
  %0 = graph.reshape %k : (tensor<1x2x8x16xf32>) -> tensor<1x2x1x8x16xf32>
  %1 = graph.broadcast %0 : (tensor<1x2x1x8x16xf32>) -> tensor<1x2x2x8x16xf32>
  %2 = graph.reshape %1 : (tensor<1x2x2x8x16xf32>) -> tensor<1x4x8x16xf32>
  %y = graph.attention %q, %2, %2 mask %m {scale = 0.25 : f64}
    : (tensor<1x4x8x16xf32>, tensor<1x4x8x16xf32>, tensor<1x4x8x16xf32>, tensor<1x2x8x8xf32>) -> tensor<1x4x8x16xf32>
  return %y : tensor<1x4x8x16xf32>
}
