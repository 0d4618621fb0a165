// RUN: tcc-opt %s --tcc-set-target=name=cuda --tcc-fuse-ops --tcc-lower-to-exec --tcc-select-kernels | FileCheck %s
// cuDNN has silu behind a convolution, cuBLASLt has not behind a product.

// CHECK:      exec.kernel {{.*}}library = #exec.library_work<convolution,
// CHECK-SAME: steps = [#exec.step<silu>]
// CHECK:      graph.conv
// CHECK:      graph.silu
// CHECK:      exec.kernel
// CHECK-NOT:  library =
// CHECK:      graph.matmul
func.func @main(%x: tensor<2x14x14x64xbf16>, %f: tensor<64x3x3x64xbf16>, %w: tensor<64x64xbf16>)
    -> tensor<2x14x14x64xbf16> {
  %c = graph.conv %x, %f {filters = 64 : i64, groups = 1 : i64,
    window = array<i64: 3, 3>, strides = array<i64: 1, 1>, pad_low = array<i64: 1, 1>,
    pad_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, channels_last}
    : (tensor<2x14x14x64xbf16>, tensor<64x3x3x64xbf16>) -> tensor<2x14x14x64xf32>
  %s = graph.silu %c : (tensor<2x14x14x64xf32>) -> tensor<2x14x14x64xf32>
  %t = graph.cast %s : (tensor<2x14x14x64xf32>) -> tensor<2x14x14x64xbf16>
  %m = graph.matmul %t, %w
    : (tensor<2x14x14x64xbf16>, tensor<64x64xbf16>) -> tensor<2x14x14x64xf32>
  %r = graph.silu %m : (tensor<2x14x14x64xf32>) -> tensor<2x14x14x64xf32>
  %n = graph.cast %r : (tensor<2x14x14x64xf32>) -> tensor<2x14x14x64xbf16>
  return %n : tensor<2x14x14x64xbf16>
}
