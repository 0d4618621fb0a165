// RUN: tcc-opt %s --tcc-set-target=name=cuda --tcc-fuse-ops --tcc-lower-to-exec --tcc-select-kernels | FileCheck %s
// cuDNN has these functions behind a convolution, cuBLASLt has none behind a
// product.

// CHECK:      exec.kernel {{.*}}library = #exec.library_work<convolution,
// CHECK-SAME: steps = [#exec.step<silu>]
// CHECK:      graph.conv
// CHECK:      graph.silu
// CHECK:      exec.kernel {{.*}}library = #exec.library_work<convolution,
// CHECK-SAME: steps = [#exec.step<sigmoid>]
// CHECK:      exec.kernel {{.*}}library = #exec.library_work<convolution,
// CHECK-SAME: steps = [#exec.step<tanh>]
// CHECK:      exec.kernel {{.*}}library = #exec.library_work<convolution,
// CHECK-SAME: steps = [#exec.step<gelu>]
// CHECK:      exec.kernel
// CHECK-NOT:  library =
// CHECK:      graph.matmul
func.func @main(%x: tensor<2x14x14x64xbf16>, %f: tensor<64x3x3x64xbf16>, %w: tensor<64x64xbf16>)
    -> tensor<2x14x14x64xbf16> {
  %c0 = graph.conv %x, %f {filters = 64 : i64, groups = 1 : i64,
    window = array<i64: 3, 3>, strides = array<i64: 1, 1>, pad_low = array<i64: 1, 1>,
    pad_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, channels_last}
    : (tensor<2x14x14x64xbf16>, tensor<64x3x3x64xbf16>) -> tensor<2x14x14x64xf32>
  %s0 = graph.silu %c0 : (tensor<2x14x14x64xf32>) -> tensor<2x14x14x64xf32>
  %t0 = graph.cast %s0 : (tensor<2x14x14x64xf32>) -> tensor<2x14x14x64xbf16>
  %c1 = graph.conv %t0, %f {filters = 64 : i64, groups = 1 : i64,
    window = array<i64: 3, 3>, strides = array<i64: 1, 1>, pad_low = array<i64: 1, 1>,
    pad_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, channels_last}
    : (tensor<2x14x14x64xbf16>, tensor<64x3x3x64xbf16>) -> tensor<2x14x14x64xf32>
  %s1 = graph.sigmoid %c1 : (tensor<2x14x14x64xf32>) -> tensor<2x14x14x64xf32>
  %t1 = graph.cast %s1 : (tensor<2x14x14x64xf32>) -> tensor<2x14x14x64xbf16>
  %c2 = graph.conv %t1, %f {filters = 64 : i64, groups = 1 : i64,
    window = array<i64: 3, 3>, strides = array<i64: 1, 1>, pad_low = array<i64: 1, 1>,
    pad_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, channels_last}
    : (tensor<2x14x14x64xbf16>, tensor<64x3x3x64xbf16>) -> tensor<2x14x14x64xf32>
  %s2 = graph.tanh %c2 : (tensor<2x14x14x64xf32>) -> tensor<2x14x14x64xf32>
  %t2 = graph.cast %s2 : (tensor<2x14x14x64xf32>) -> tensor<2x14x14x64xbf16>
  %c3 = graph.conv %t2, %f {filters = 64 : i64, groups = 1 : i64,
    window = array<i64: 3, 3>, strides = array<i64: 1, 1>, pad_low = array<i64: 1, 1>,
    pad_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, channels_last}
    : (tensor<2x14x14x64xbf16>, tensor<64x3x3x64xbf16>) -> tensor<2x14x14x64xf32>
  %s3 = graph.gelu %c3 : (tensor<2x14x14x64xf32>) -> tensor<2x14x14x64xf32>
  %t3 = graph.cast %s3 : (tensor<2x14x14x64xf32>) -> tensor<2x14x14x64xbf16>
  %m = graph.matmul %t3, %w
    : (tensor<2x14x14x64xbf16>, tensor<64x64xbf16>) -> tensor<2x14x14x64xf32>
  %r = graph.silu %m : (tensor<2x14x14x64xf32>) -> tensor<2x14x14x64xf32>
  %n = graph.cast %r : (tensor<2x14x14x64xf32>) -> tensor<2x14x14x64xbf16>
  return %n : tensor<2x14x14x64xbf16>
}
