// RUN: tcc-opt %s --tcc-set-target=name=cuda --tcc-lower-kernels --canonicalize --cse | FileCheck %s

// A warp has 16 queries and the block walks over 32 keys at a time. A thread's
// part of the queries is in registers; scores become weights there, and the
// weights the rows of the next product: only keys and values are staged.
// CHECK-LABEL: gpu.func @attention(
// CHECK-SAME:    known_block_size = array<i32: 128, 1, 1>
// CHECK:         scf.for {{.+}} step %c32
// CHECK-COUNT-2:   llvm.store %{{.+}} : i16, !llvm.ptr<3>
// CHECK:           gpu.barrier
// CHECK-COUNT-16:  llvm.call_intrinsic "llvm.nvvm.mma.m16n8k16.row.col.bf16"
// CHECK-NOT:       llvm.store
// CHECK:           gpu.shuffle{{ +}}xor
// CHECK:           math.exp
// CHECK-NOT:       llvm.store
// CHECK:           arith.truncf %{{.+}} : f32 to bf16
// CHECK-COUNT-16:  llvm.call_intrinsic "llvm.nvvm.mma.m16n8k16.row.col.bf16"
// CHECK-NOT:       llvm.call_intrinsic
// CHECK:           gpu.barrier
// CHECK:         arith.divf
// CHECK:         llvm.store %{{.+}} : f32, !llvm.ptr
func.func @attention(%q: tensor<2x70x64xbf16>, %k: tensor<2x64x64xbf16>)
    -> tensor<2x70x64xf32> {
  %y = graph.fused <attention> (%q, %k)
      : (tensor<2x70x64xbf16>, tensor<2x64x64xbf16>) -> tensor<2x70x64xf32> {
  ^bb0(%a: tensor<2x70x64xbf16>, %b: tensor<2x64x64xbf16>):
    %r = graph.attention %a, %b, %b {scale = 1.25e-01 : f64}
        : (tensor<2x70x64xbf16>, tensor<2x64x64xbf16>, tensor<2x64x64xbf16>)
        -> tensor<2x70x64xf32>
    graph.yield %r : tensor<2x70x64xf32>
  }
  return %y : tensor<2x70x64xf32>
}

// The gradient of keys: a block has some and walks over queries and gradients;
// three products, the last one summed over all steps.
// CHECK-LABEL: gpu.func @gradient(
// CHECK:         %{{.+}}:8 = scf.for {{.+}} step %c32
// CHECK-COUNT-12:  llvm.call_intrinsic "llvm.nvvm.mma.m16n8k16.row.col.f32.f32"
// CHECK-NOT:       llvm.call_intrinsic
// CHECK-NOT:     llvm.atomicrmw
// CHECK:         gpu.return
func.func @gradient(%x: tensor<2x64x16xf16>, %n: tensor<2x64x1xf32>)
    -> tensor<2x64x16xf32> {
  %y = graph.fused <attention> (%x, %n)
      : (tensor<2x64x16xf16>, tensor<2x64x1xf32>) -> tensor<2x64x16xf32> {
  ^bb0(%a: tensor<2x64x16xf16>, %b: tensor<2x64x1xf32>):
    %r = graph.attention_gradient <key> %a, %a, %a, %a, %b, %b
        {scale = 2.5e-01 : f64}
        : (tensor<2x64x16xf16>, tensor<2x64x16xf16>, tensor<2x64x16xf16>,
           tensor<2x64x16xf16>, tensor<2x64x1xf32>, tensor<2x64x1xf32>)
        -> tensor<2x64x16xf32>
    graph.yield %r : tensor<2x64x16xf32>
  }
  return %y : tensor<2x64x16xf32>
}

// All gradients: some blocks have queries and make three products, others keys and
// make four.
// CHECK-LABEL: gpu.func @gradients(
// CHECK:         scf.if
// CHECK:           %{{.+}}:8 = scf.for {{.+}} step %c32
// CHECK-COUNT-12:    llvm.call_intrinsic "llvm.nvvm.mma.m16n8k16.row.col.f32.f32"
// CHECK-NOT:         llvm.call_intrinsic
// CHECK:         scf.if
// CHECK:           %{{.+}}:16 = scf.for {{.+}} step %c32
// CHECK-COUNT-16:    llvm.call_intrinsic "llvm.nvvm.mma.m16n8k16.row.col.f32.f32"
// CHECK-NOT:         llvm.call_intrinsic
// CHECK-NOT:     llvm.atomicrmw
// CHECK:         gpu.return
func.func @gradients(%x: tensor<2x64x16xf16>, %n: tensor<2x64x1xf32>)
    -> tensor<3x2x64x16xf32> {
  %y = graph.fused <attention> (%x, %n)
      : (tensor<2x64x16xf16>, tensor<2x64x1xf32>) -> tensor<3x2x64x16xf32> {
  ^bb0(%a: tensor<2x64x16xf16>, %b: tensor<2x64x1xf32>):
    %r = graph.attention_gradient <all> %a, %a, %a, %a, %b, %b
        {scale = 2.5e-01 : f64}
        : (tensor<2x64x16xf16>, tensor<2x64x16xf16>, tensor<2x64x16xf16>,
           tensor<2x64x16xf16>, tensor<2x64x1xf32>, tensor<2x64x1xf32>)
        -> tensor<3x2x64x16xf32>
    graph.yield %r : tensor<3x2x64x16xf32>
  }
  return %y : tensor<3x2x64x16xf32>
}

// The logarithms of the sums of weights are another result, which one thread of a
// row stores.
// CHECK-LABEL: gpu.func @normalized(
// CHECK:         math.log
// CHECK:         llvm.store %{{.+}} : f32, !llvm.ptr
// CHECK:         arith.divf
// CHECK:         llvm.store %{{.+}} : f32, !llvm.ptr
func.func @normalized(%x: tensor<2x64x16xf16>)
    -> (tensor<2x64x16xf32>, tensor<2x64x1xf32>) {
  %y:2 = graph.fused <attention> (%x) : (tensor<2x64x16xf16>)
      -> (tensor<2x64x16xf32>, tensor<2x64x1xf32>) {
  ^bb0(%a: tensor<2x64x16xf16>):
    %r, %n = graph.attention %a, %a, %a {scale = 2.5e-01 : f64}
        : (tensor<2x64x16xf16>, tensor<2x64x16xf16>, tensor<2x64x16xf16>)
        -> (tensor<2x64x16xf32>, tensor<2x64x1xf32>)
    graph.yield %r, %n : tensor<2x64x16xf32>, tensor<2x64x1xf32>
  }
  return %y#0, %y#1 : tensor<2x64x16xf32>, tensor<2x64x1xf32>
}
