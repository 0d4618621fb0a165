// RUN: tcc-opt %s --tcc-select-kernels | FileCheck %s
// A library is told what it may round to tf32: of f32, no other convolution is
// described.

// CHECK: exec.kernel @product {{.*}}library = #exec.library_work<product, {{.*}}, tf32 = true>
exec.kernel @product attributes {target = "cuda"} {
^bb0(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>):
  %y = graph.fused <contraction> (%x, %w) : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32> {
  ^bb0(%p: tensor<4x8xf32>, %q: tensor<8x8xf32>):
    %m = graph.matmul %p, %q {tf32} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    graph.yield %m : tensor<4x8xf32>
  }
}

// CHECK: exec.kernel @window {{.*}}library = #exec.library_work<convolution, lhs = <0 : f32, {{.*}}, tf32 = true, window = {{.*}}>
exec.kernel @window attributes {target = "cuda"} {
^bb0(%x: tensor<2x6x6x8xf32>, %w: tensor<16x3x3x8xf32>):
  %y = graph.fused <contraction> (%x, %w)
      : (tensor<2x6x6x8xf32>, tensor<16x3x3x8xf32>) -> tensor<2x6x6x16xf32> {
  ^bb0(%p: tensor<2x6x6x8xf32>, %q: tensor<16x3x3x8xf32>):
    %m = graph.conv %p, %q {filters = 16 : i64, groups = 1 : i64,
      window = array<i64: 3, 3>, strides = array<i64: 1, 1>, pad_low = array<i64: 1, 1>,
      pad_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, channels_last, tf32}
      : (tensor<2x6x6x8xf32>, tensor<16x3x3x8xf32>) -> tensor<2x6x6x16xf32>
    graph.yield %m : tensor<2x6x6x16xf32>
  }
}
