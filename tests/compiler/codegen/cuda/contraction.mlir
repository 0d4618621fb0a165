// RUN: tcc-opt %s --tcc-set-target=name=cuda --tcc-lower-kernels --canonicalize --cse | FileCheck %s

// Tiles of 64 x 64 results. The threads stage 16 steps of k at a time, those of
// the next tile while they multiply these: one barrier a tile. 4 x 4 sums stay
// in registers; four neighbours are stored at once.
// CHECK-LABEL: gpu.func @product(
// CHECK-SAME:    known_block_size = array<i32: 256, 1, 1>
// CHECK:         %[[LOOP:.+]]:25 = scf.for
// CHECK-NOT:     scf.for
// CHECK-COUNT-8: llvm.store %{{.+}} : f32, !llvm.ptr<3>
// CHECK:         gpu.barrier
// CHECK-COUNT-8: llvm.load %{{.+}} : !llvm.ptr -> f32
// CHECK:         llvm.load %{{.+}} : !llvm.ptr<3> -> vector<4xf32>
// CHECK:         math.fma
// CHECK-NOT:     gpu.barrier
// CHECK-NOT:     llvm.alloca
// CHECK-COUNT-4: math.tanh
// CHECK-COUNT-4: llvm.store %{{.+}} : f32, !llvm.ptr
// CHECK:         gpu.return
func.func @product(%x: tensor<512x64xf32>, %w: tensor<64x512xf32>)
    -> tensor<512x512xf32> {
  %y = graph.fused <contraction> (%x, %w)
      : (tensor<512x64xf32>, tensor<64x512xf32>) -> tensor<512x512xf32> {
  ^bb0(%a: tensor<512x64xf32>, %b: tensor<64x512xf32>):
    %c = graph.matmul %a, %b
        : (tensor<512x64xf32>, tensor<64x512xf32>) -> tensor<512x512xf32>
    %d = graph.tanh %c : (tensor<512x512xf32>) -> tensor<512x512xf32>
    graph.yield %d : tensor<512x512xf32>
  }
  return %y : tensor<512x512xf32>
}

// Of few rows, a block has 16 parts of each sum, which meet in shared memory.
// Columns of a transposed matrix are read along k; nothing is read outside of
// an operand.
// CHECK-LABEL: gpu.func @few_rows(
// CHECK:         arith.minsi
// CHECK:         scf.for
// CHECK-COUNT-3: gpu.barrier
// CHECK-NOT:     gpu.barrier
// CHECK-COUNT-15: arith.addf
// CHECK:         scf.if
// CHECK:         llvm.store %{{.+}} : i16, !llvm.ptr
func.func @few_rows(%x: tensor<2x100xbf16>, %w: tensor<320x100xbf16>)
    -> tensor<2x320xbf16> {
  %y = graph.fused <contraction> (%x, %w)
      : (tensor<2x100xbf16>, tensor<320x100xbf16>) -> tensor<2x320xbf16> {
  ^bb0(%a: tensor<2x100xbf16>, %b: tensor<320x100xbf16>):
    %c = graph.matmul %a, %b {transpose_rhs}
        : (tensor<2x100xbf16>, tensor<320x100xbf16>) -> tensor<2x320xbf16>
    graph.yield %c : tensor<2x320xbf16>
  }
  return %y : tensor<2x320xbf16>
}

// A convolution is a product whose rows are positions and whose columns are
// filters. Where a tile is of one tap, all threads divide by constants once for
// it; elements outside of the image are zero.
// CHECK-LABEL: gpu.func @convolution(
// CHECK:         scf.for
// CHECK:         gpu.barrier
// CHECK:         arith.cmpi ult
// CHECK:         llvm.load %{{.+}} : !llvm.ptr -> f32
// CHECK:         arith.select
// CHECK:         math.fma
func.func @convolution(%x: tensor<1x64x64x32xf32>, %w: tensor<64x3x3x32xf32>)
    -> tensor<1x64x64x64xf32> {
  %y = graph.fused <contraction> (%x, %w)
      : (tensor<1x64x64x32xf32>, tensor<64x3x3x32xf32>)
      -> tensor<1x64x64x64xf32> {
  ^bb0(%a: tensor<1x64x64x32xf32>, %b: tensor<64x3x3x32xf32>):
    %c = graph.conv %a, %b {filters = 64 : i64, groups = 1 : i64,
        window = array<i64: 3, 3>, strides = array<i64: 1, 1>,
        pad_low = array<i64: 1, 1>, pad_high = array<i64: 1, 1>,
        dilations = array<i64: 1, 1>, channels_last}
        : (tensor<1x64x64x32xf32>, tensor<64x3x3x32xf32>)
        -> tensor<1x64x64x64xf32>
    graph.yield %c : tensor<1x64x64x64xf32>
  }
  return %y : tensor<1x64x64x64xf32>
}
