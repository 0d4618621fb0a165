// RUN: tcc-opt %s --tcc-set-target=name=cuda --tcc-lower-kernels --canonicalize --cse | FileCheck %s

// A causal walk ends with the block's queries, and begins with its keys; the mask is
// not read.
// CHECK-LABEL: gpu.func @causal(
// CHECK:         %[[END:.+]] = arith.minsi
// CHECK:         scf.for {{.+}} = %c0{{.*}} to %[[END]] step %c32
// CHECK-NOT:       : !llvm.ptr -> f32
// CHECK:           arith.select %{{.+}}, %{{.+}}, %{{.+}} : f32
// CHECK:         gpu.return
func.func @causal(%x: tensor<2x256x16xf16>, %m: tensor<1x256x256xf32>)
    -> tensor<2x256x16xf32> {
  %y = graph.fused <attention> (%x, %m)
      : (tensor<2x256x16xf16>, tensor<1x256x256xf32>) -> tensor<2x256x16xf32> {
  ^bb0(%a: tensor<2x256x16xf16>, %b: tensor<1x256x256xf32>):
    %r = graph.attention %a, %a, %a mask %b {scale = 2.5e-01 : f64, causal}
        : (tensor<2x256x16xf16>, tensor<2x256x16xf16>, tensor<2x256x16xf16>,
           tensor<1x256x256xf32>) -> tensor<2x256x16xf32>
    graph.yield %r : tensor<2x256x16xf32>
  }
  return %y : tensor<2x256x16xf32>
}

// CHECK-LABEL: gpu.func @gradient(
// CHECK:         scf.for {{.+}} = %{{[0-9]+}} to %c256{{.*}} step %c32
func.func @gradient(%x: tensor<2x256x16xf16>, %n: tensor<2x256x1xf32>,
                    %m: tensor<1x256x256xf32>) -> tensor<2x256x16xf32> {
  %y = graph.fused <attention> (%x, %n, %m)
      : (tensor<2x256x16xf16>, tensor<2x256x1xf32>, tensor<1x256x256xf32>)
      -> tensor<2x256x16xf32> {
  ^bb0(%a: tensor<2x256x16xf16>, %b: tensor<2x256x1xf32>, %c: tensor<1x256x256xf32>):
    %r = graph.attention_gradient <key> %a, %a, %a, %a, %b, %b mask %c
        {scale = 2.5e-01 : f64, causal}
        : (tensor<2x256x16xf16>, tensor<2x256x16xf16>, tensor<2x256x16xf16>,
           tensor<2x256x16xf16>, tensor<2x256x1xf32>, tensor<2x256x1xf32>,
           tensor<1x256x256xf32>) -> tensor<2x256x16xf32>
    graph.yield %r : tensor<2x256x16xf32>
  }
  return %y : tensor<2x256x16xf32>
}
