// RUN: tcc-opt %s --tcc-set-target=name=cuda --tcc-lower-kernels --canonicalize --cse | FileCheck %s

// A thread computes as many neighbours as fill 16 bytes: four f32. All are
// computed before the first is stored.
// CHECK-LABEL: gpu.func @neighbours(
// CHECK-SAME:    %[[X:.+]]: !llvm.ptr {llvm.align = 16 : i64, llvm.noalias, llvm.readonly}
// CHECK-SAME:    known_block_size = array<i32: 256, 1, 1>
// CHECK-DAG:     %[[VECTORS:.+]] = arith.constant 768 : index
// CHECK:         %[[BLOCK:.+]] = gpu.block_id x
// CHECK:         %[[THREAD:.+]] = gpu.thread_id x
// CHECK:         arith.cmpi slt, %{{.+}}, %[[VECTORS]]
// CHECK-COUNT-4: arith.addf
// CHECK-NOT:     arith.addf
// CHECK-COUNT-4: llvm.store
// CHECK-NOT:     llvm.store
func.func @neighbours(%x: tensor<64x48xf32>, %b: tensor<48xf32>)
    -> tensor<64x48xf32> {
  %y = graph.fused <pointwise> (%x, %b)
      : (tensor<64x48xf32>, tensor<48xf32>) -> tensor<64x48xf32> {
  ^bb0(%a: tensor<64x48xf32>, %c: tensor<48xf32>):
    %d = graph.broadcast %c : (tensor<48xf32>) -> tensor<64x48xf32>
    %e = graph.add %a, %d
        : (tensor<64x48xf32>, tensor<64x48xf32>) -> tensor<64x48xf32>
    graph.yield %e : tensor<64x48xf32>
  }
  return %y : tensor<64x48xf32>
}

// A row of 1001 elements is 125 vectors of eight bf16 and a tail.
// CHECK-LABEL:   gpu.func @tail(
// CHECK:         arith.constant 126 : index
// CHECK:         scf.for
// CHECK:         } else {
// CHECK-COUNT-8: llvm.store
func.func @tail(%x: tensor<1001xbf16>) -> tensor<1001xbf16> {
  %y = graph.fused <pointwise> (%x) : (tensor<1001xbf16>) -> tensor<1001xbf16> {
  ^bb0(%a: tensor<1001xbf16>):
    %e = graph.abs %a : (tensor<1001xbf16>) -> tensor<1001xbf16>
    graph.yield %e : tensor<1001xbf16>
  }
  return %y : tensor<1001xbf16>
}

// What is transposed goes through a tile in shared memory.
// CHECK-LABEL: gpu.module @transposed
// CHECK:         llvm.mlir.global internal @transposed_shared()
// CHECK-SAME:      addr_space = 3 : i32, alignment = 16
// CHECK-SAME:      !llvm.array<4224 x i8>
// CHECK:       gpu.func @transposed(
// CHECK:         llvm.store %{{.+}} : f32, !llvm.ptr<3>
// CHECK:         gpu.barrier
// CHECK:         llvm.load %{{.+}} : !llvm.ptr<3> -> f32
// CHECK:         llvm.store %{{.+}} : f32, !llvm.ptr
// CHECK-NOT:     gpu.barrier
func.func @transposed(%x: tensor<100x70xf32>) -> tensor<70x100xf32> {
  %y = graph.fused <pointwise> (%x)
      : (tensor<100x70xf32>) -> tensor<70x100xf32> {
  ^bb0(%a: tensor<100x70xf32>):
    %t = graph.transpose %a [1, 0]
        : (tensor<100x70xf32>) -> tensor<70x100xf32>
    %e = graph.exp %t : (tensor<70x100xf32>) -> tensor<70x100xf32>
    graph.yield %e : tensor<70x100xf32>
  }
  return %y : tensor<70x100xf32>
}
