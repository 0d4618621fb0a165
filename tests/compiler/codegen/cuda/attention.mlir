// RUN: tcc-opt %s --tcc-set-target=name=cuda --tcc-lower-kernels --canonicalize --cse | FileCheck %s

// A block has 64 queries, and the keys 32 at a time: a row's largest score and
// sum of weights, and the sums of the result, are carried in registers; scores
// go through shared memory alone. The 16 threads of a row agree on its largest
// score.
// CHECK-LABEL: gpu.func @attention(
// CHECK-SAME:    known_block_size = array<i32: 256, 1, 1>
// CHECK-SAME:    nvvm.minctasm = 1
// CHECK:         %[[LOWEST:.+]] = arith.constant 0xFF800000 : f32
// CHECK:         %[[STATE:.+]]:24 = scf.for {{.+}} step %c32
// CHECK:           %[[SCORES:.+]]:8 = scf.for {{.+}} step %c32
// CHECK:             gpu.barrier
// CHECK:             math.fma
// CHECK:             gpu.barrier
// CHECK:           llvm.load %{{.+}} : !llvm.ptr -> f32
// CHECK:           %[[KEY:.+]] = arith.cmpi slt
// CHECK:           arith.select %[[KEY]], %{{.+}}, %[[LOWEST]]
// CHECK-COUNT-4:   gpu.shuffle{{ +}}xor
// CHECK:           math.exp
// CHECK:           llvm.store %{{.+}} : f32, !llvm.ptr<3>
// CHECK:           gpu.barrier
// CHECK:           math.fma
// CHECK:           gpu.barrier
// CHECK-NOT:     llvm.alloca
// CHECK:         arith.divf
// CHECK:         arith.mulf %[[STATE]]#8
// CHECK-COUNT-4: llvm.store %{{.+}} : f32, !llvm.ptr
func.func @attention(%q: tensor<2x70x64xf32>, %k: tensor<2x50x64xf32>,
                     %v: tensor<2x50x64xf32>, %m: tensor<1x70x50xf32>)
    -> tensor<2x70x64xf32> {
  %y = graph.fused <attention> (%q, %k, %v, %m)
      : (tensor<2x70x64xf32>, tensor<2x50x64xf32>, tensor<2x50x64xf32>,
         tensor<1x70x50xf32>) -> tensor<2x70x64xf32> {
  ^bb0(%a: tensor<2x70x64xf32>, %b: tensor<2x50x64xf32>,
       %c: tensor<2x50x64xf32>, %d: tensor<1x70x50xf32>):
    %r = graph.attention %a, %b, %c mask %d {scale = 1.25e-01 : f64}
        : (tensor<2x70x64xf32>, tensor<2x50x64xf32>, tensor<2x50x64xf32>,
           tensor<1x70x50xf32>) -> tensor<2x70x64xf32>
    graph.yield %r : tensor<2x70x64xf32>
  }
  return %y : tensor<2x70x64xf32>
}
