// RUN: tcc-opt %s --tcc-lower-kernels | FileCheck %s

// The loop over the rows of a window leaves out those above and below the
// input; along a row the lanes outside are masked.
// CHECK-LABEL: func.func @depthwise(
// CHECK:         %[[FROM:.+]] = arith.maxsi
// CHECK:         %[[TO:.+]] = arith.minsi
// CHECK:         scf.for %{{.+}} = %[[FROM]] to %[[TO]] {{.*}} -> (vector<16xf32>)
// CHECK-COUNT-3:   llvm.intr.masked.load
// CHECK-NOT:       llvm.intr.masked.load
// CHECK:         llvm.store

func.func @depthwise(%x: tensor<1x4x9x40xf32>, %w: tensor<4x1x3x3xf32>) -> tensor<1x4x9x40xf32> {
  %y = graph.fused <window> (%x, %w) : (tensor<1x4x9x40xf32>, tensor<4x1x3x3xf32>) -> tensor<1x4x9x40xf32> {
  ^bb0(%a: tensor<1x4x9x40xf32>, %b: tensor<4x1x3x3xf32>):
    %0 = graph.conv %a, %b {filters = 4 : i64, groups = 4 : i64, window = array<i64: 3, 3>,
      strides = array<i64: 1, 1>, pad_low = array<i64: 1, 1>, pad_high = array<i64: 1, 1>,
      dilations = array<i64: 1, 1>} : (tensor<1x4x9x40xf32>, tensor<4x1x3x3xf32>) -> tensor<1x4x9x40xf32>
    graph.yield %0 : tensor<1x4x9x40xf32>
  }
  return %y : tensor<1x4x9x40xf32>
}

// With the channels last vectors run along them and need no masks; four pixels
// are worked on at once where all columns of their windows lie inside, and their
// taps of a row without a loop.
// CHECK-LABEL: func.func @pixels(
// CHECK:         scf.for {{.*}} -> (vector<16xf32>, vector<16xf32>)
// CHECK:         scf.for {{.*}} -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>)
// CHECK-COUNT-24:  math.fma
// CHECK:         scf.yield
// CHECK-NOT:     llvm.intr.masked.load
// CHECK:         return

func.func @pixels(%x: tensor<1x9x40x64xf32>, %w: tensor<9x64xf32>) -> tensor<1x9x40x64xf32> {
  %y = graph.fused <window> (%x, %w) : (tensor<1x9x40x64xf32>, tensor<9x64xf32>) -> tensor<1x9x40x64xf32> {
  ^bb0(%a: tensor<1x9x40x64xf32>, %b: tensor<9x64xf32>):
    %0 = graph.conv %a, %b {channels_last, packed_filter, filters = 64 : i64, groups = 64 : i64,
      window = array<i64: 3, 3>, strides = array<i64: 1, 1>, pad_low = array<i64: 1, 1>,
      pad_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>} : (tensor<1x9x40x64xf32>, tensor<9x64xf32>) -> tensor<1x9x40x64xf32>
    graph.yield %0 : tensor<1x9x40x64xf32>
  }
  return %y : tensor<1x9x40x64xf32>
}
