// RUN: tcc-opt %s --tcc-set-target=name=cuda --tcc-lower-kernels --canonicalize --cse | FileCheck %s

// A warp takes a row of 1024: four vectors a thread, which stay in registers
// from one stage to the next. Warps without a row do nothing.
// CHECK-LABEL: gpu.module @softmax
// CHECK-NOT:     llvm.mlir.global
// CHECK:       gpu.func @softmax(
// CHECK-SAME:    known_block_size = array<i32: 128, 1, 1>
// CHECK:         scf.if
// CHECK-COUNT-32: llvm.load
// CHECK-NOT:     llvm.load
// CHECK-COUNT-5: gpu.shuffle xor
// CHECK-COUNT-5: gpu.shuffle xor
// CHECK-NOT:     gpu.shuffle
// CHECK-COUNT-32: llvm.store
// CHECK-NOT:     gpu.barrier
func.func @softmax(%x: tensor<64x1024xbf16>) -> tensor<64x1024xbf16> {
  %y = graph.fused <row> (%x)
      : (tensor<64x1024xbf16>) -> tensor<64x1024xbf16> {
  ^bb0(%a: tensor<64x1024xbf16>):
    %e = graph.softmax %a {axis = 1 : i64}
        : (tensor<64x1024xbf16>) -> tensor<64x1024xbf16>
    graph.yield %e : tensor<64x1024xbf16>
  }
  return %y : tensor<64x1024xbf16>
}

// A block takes a long row: a loop in each thread, the sums of its warps through
// shared memory.
// CHECK-LABEL: gpu.module @long_row
// CHECK:         llvm.mlir.global internal @long_row_shared()
// CHECK-SAME:      !llvm.array<64 x i8>
// CHECK:       gpu.func @long_row(
// CHECK-SAME:    known_block_size = array<i32: 512, 1, 1>
// CHECK:         scf.for {{.*}} iter_args
// CHECK-COUNT-5: gpu.shuffle xor
// CHECK:         scf.if
// CHECK:           llvm.store %{{.+}} : f32, !llvm.ptr<3>
// CHECK:         gpu.barrier
// CHECK-COUNT-16: llvm.load %{{.+}} : !llvm.ptr<3> -> f32
// CHECK:         scf.if
// CHECK:           llvm.store
func.func @long_row(%x: tensor<8x100000xf32>) -> tensor<8xf32> {
  %y = graph.fused <row> (%x) : (tensor<8x100000xf32>) -> tensor<8xf32> {
  ^bb0(%a: tensor<8x100000xf32>):
    %e = graph.reduce <sum> %a [1] : (tensor<8x100000xf32>) -> tensor<8xf32>
    graph.yield %e : tensor<8xf32>
  }
  return %y : tensor<8xf32>
}

// Columns are reduced by neighbouring threads: 32 vectors of four columns, each
// by eight threads.
// CHECK-LABEL: gpu.module @columns
// CHECK:         !llvm.array<4096 x i8>
// CHECK:       gpu.func @columns(
// CHECK-SAME:    known_block_size = array<i32: 256, 1, 1>
// CHECK-NOT:     gpu.shuffle
// CHECK:         gpu.barrier
// CHECK-COUNT-32: llvm.load %{{.+}} : !llvm.ptr<3> -> f32
func.func @columns(%x: tensor<512x256xf32>) -> tensor<256xf32> {
  %y = graph.fused <row> (%x) : (tensor<512x256xf32>) -> tensor<256xf32> {
  ^bb0(%a: tensor<512x256xf32>):
    %e = graph.reduce <sum> %a [0] : (tensor<512x256xf32>) -> tensor<256xf32>
    graph.yield %e : tensor<256xf32>
  }
  return %y : tensor<256xf32>
}

// Indices travel with their values; the first of equal ones wins.
// CHECK-LABEL: gpu.func @to_index(
// CHECK:         gpu.shuffle xor %{{.+}} : f32
// CHECK:         gpu.shuffle xor %{{.+}} : i64
func.func @to_index(%x: tensor<5x9xf32>) -> tensor<5xi64> {
  %y = graph.fused <row> (%x) : (tensor<5x9xf32>) -> tensor<5xi64> {
  ^bb0(%a: tensor<5x9xf32>):
    %e = graph.arg_reduce <max> %a {axis = 1 : i64}
        : (tensor<5x9xf32>) -> tensor<5xi64>
    graph.yield %e : tensor<5xi64>
  }
  return %y : tensor<5xi64>
}
