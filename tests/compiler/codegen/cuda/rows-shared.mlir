// RUN: tcc-opt %s --tcc-set-target=name=cuda --tcc-lower-kernels --canonicalize --cse | FileCheck %s

// Shared memory holds what the warps have of six of seven reductions of columns,
// 8 KB each. The last one takes the place of the first when all have read it.
// CHECK-LABEL: gpu.module @many
// CHECK:         !llvm.array<49152 x i8>
// CHECK:       gpu.func @many(
// CHECK-COUNT-48: llvm.store %{{.+}} : f32, !llvm.ptr<3>
// CHECK-NOT:     llvm.store
// CHECK:         gpu.barrier
// CHECK-COUNT-384: llvm.load %{{.+}} : !llvm.ptr<3> -> f32
// CHECK-NOT:     llvm.load
// CHECK:         gpu.barrier
// CHECK-COUNT-8: llvm.store %{{.+}} : f32, !llvm.ptr<3>
// CHECK:         gpu.barrier
// CHECK-COUNT-64: llvm.load %{{.+}} : !llvm.ptr<3> -> f32
// CHECK-NOT:     gpu.barrier
func.func @many(%x: tensor<512x512xbf16>) -> tensor<512xbf16> {
  %y:7 = graph.fused <row> (%x) : (tensor<512x512xbf16>)
      -> (tensor<512xbf16>, tensor<512xbf16>, tensor<512xbf16>,
          tensor<512xbf16>, tensor<512xbf16>, tensor<512xbf16>,
          tensor<512xbf16>) {
  ^bb0(%a: tensor<512x512xbf16>):
    %b = graph.abs %a : (tensor<512x512xbf16>) -> tensor<512x512xbf16>
    %c = graph.neg %a : (tensor<512x512xbf16>) -> tensor<512x512xbf16>
    %0 = graph.reduce <sum> %a [0] : (tensor<512x512xbf16>) -> tensor<512xbf16>
    %1 = graph.reduce <max> %a [0] : (tensor<512x512xbf16>) -> tensor<512xbf16>
    %2 = graph.reduce <min> %a [0] : (tensor<512x512xbf16>) -> tensor<512xbf16>
    %3 = graph.reduce <sum> %b [0] : (tensor<512x512xbf16>) -> tensor<512xbf16>
    %4 = graph.reduce <max> %b [0] : (tensor<512x512xbf16>) -> tensor<512xbf16>
    %5 = graph.reduce <min> %b [0] : (tensor<512x512xbf16>) -> tensor<512xbf16>
    %6 = graph.reduce <sum> %c [0] : (tensor<512x512xbf16>) -> tensor<512xbf16>
    graph.yield %0, %1, %2, %3, %4, %5, %6
        : tensor<512xbf16>, tensor<512xbf16>, tensor<512xbf16>,
          tensor<512xbf16>, tensor<512xbf16>, tensor<512xbf16>,
          tensor<512xbf16>
  }
  return %y#0 : tensor<512xbf16>
}
