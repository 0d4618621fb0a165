// RUN: tcc-opt %s --tcc-lower-to-exec --tcc-share-buffers --split-input-file \
// RUN:   | FileCheck %s

// What a library adds lies where its result does, not where it stores what its
// gelu is of.
// CHECK-LABEL: exec.kernel @k1
// CHECK:         in_place = [array<i64: 1, 2>]
// CHECK-LABEL: exec.entry @main
// CHECK:         exec.launch @k1{{.*}} ins(%{{.+}}, %{{.+}}, %[[A:.+]]) outs(%{{.+}}, %[[A]])
module attributes {graph.target = "cuda"} {
func.func @main(%x: tensor<4x8xbf16>, %w: tensor<8x16xbf16>, %r: tensor<4x16xbf16>)
    -> tensor<4x16xbf16> {
  %0 = graph.fused <pointwise> (%r) : (tensor<4x16xbf16>) -> tensor<4x16xbf16> {
  ^bb0(%a: tensor<4x16xbf16>):
    %b = graph.neg %a : (tensor<4x16xbf16>) -> tensor<4x16xbf16>
    graph.yield %b : tensor<4x16xbf16>
  }
  %1:2 = graph.fused <contraction> (%x, %w, %0)
      : (tensor<4x8xbf16>, tensor<8x16xbf16>, tensor<4x16xbf16>)
      -> (tensor<4x16xbf16>, tensor<4x16xbf16>) {
  ^bb0(%p: tensor<4x8xbf16>, %q: tensor<8x16xbf16>, %c: tensor<4x16xbf16>):
    %m = graph.matmul %p, %q : (tensor<4x8xbf16>, tensor<8x16xbf16>) -> tensor<4x16xf32>
    %d = graph.cast %c : (tensor<4x16xbf16>) -> tensor<4x16xf32>
    %t = graph.add %m, %d : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
    %s = graph.cast %t : (tensor<4x16xf32>) -> tensor<4x16xbf16>
    %u = graph.cast %s : (tensor<4x16xbf16>) -> tensor<4x16xf32>
    %g = graph.gelu_tanh %u : (tensor<4x16xf32>) -> tensor<4x16xf32>
    %y = graph.cast %g : (tensor<4x16xf32>) -> tensor<4x16xbf16>
    graph.yield %s, %y : tensor<4x16xbf16>, tensor<4x16xbf16>
  }
  %2 = graph.fused <pointwise> (%1#0, %1#1)
      : (tensor<4x16xbf16>, tensor<4x16xbf16>) -> tensor<4x16xbf16> {
  ^bb0(%a: tensor<4x16xbf16>, %b: tensor<4x16xbf16>):
    %c = graph.div %a, %b : (tensor<4x16xbf16>, tensor<4x16xbf16>) -> tensor<4x16xbf16>
    graph.yield %c : tensor<4x16xbf16>
  }
  return %2 : tensor<4x16xbf16>
}
}

// -----

// A library reads what gelu's gradient is at while it writes its result; a kernel
// of f32, which no library has, reads each element before it writes there.
// CHECK-LABEL: exec.kernel @k1
// CHECK-NOT:     in_place
// CHECK-LABEL: exec.kernel @k3
// CHECK:         in_place = [array<i64: 0, 2>]
// CHECK-LABEL: exec.entry @main
module attributes {graph.target = "cuda"} {
func.func @main(%x: tensor<4x8xbf16>, %w: tensor<8x16xbf16>, %r: tensor<4x16xbf16>,
    %z: tensor<4x8xf32>, %v: tensor<8x16xf32>, %t: tensor<4x16xf32>)
    -> (tensor<4x16xbf16>, tensor<4x16xf32>) {
  %0 = graph.fused <pointwise> (%r) : (tensor<4x16xbf16>) -> tensor<4x16xbf16> {
  ^bb0(%a: tensor<4x16xbf16>):
    %b = graph.neg %a : (tensor<4x16xbf16>) -> tensor<4x16xbf16>
    graph.yield %b : tensor<4x16xbf16>
  }
  %1 = graph.fused <contraction> (%x, %w, %0)
      : (tensor<4x8xbf16>, tensor<8x16xbf16>, tensor<4x16xbf16>) -> tensor<4x16xbf16> {
  ^bb0(%p: tensor<4x8xbf16>, %q: tensor<8x16xbf16>, %c: tensor<4x16xbf16>):
    %m = graph.matmul %p, %q : (tensor<4x8xbf16>, tensor<8x16xbf16>) -> tensor<4x16xf32>
    %d = graph.cast %c : (tensor<4x16xbf16>) -> tensor<4x16xf32>
    %g = graph.gelu_tanh_gradient %d, %m
      : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
    %y = graph.cast %g : (tensor<4x16xf32>) -> tensor<4x16xbf16>
    graph.yield %y : tensor<4x16xbf16>
  }
  %2 = graph.fused <pointwise> (%t) : (tensor<4x16xf32>) -> tensor<4x16xf32> {
  ^bb0(%a: tensor<4x16xf32>):
    %b = graph.neg %a : (tensor<4x16xf32>) -> tensor<4x16xf32>
    graph.yield %b : tensor<4x16xf32>
  }
  %3 = graph.fused <contraction> (%z, %v, %2)
      : (tensor<4x8xf32>, tensor<8x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32> {
  ^bb0(%p: tensor<4x8xf32>, %q: tensor<8x16xf32>, %c: tensor<4x16xf32>):
    %m = graph.matmul %p, %q : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
    %g = graph.gelu_tanh_gradient %c, %m
      : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
    graph.yield %g : tensor<4x16xf32>
  }
  return %1, %3 : tensor<4x16xbf16>, tensor<4x16xf32>
}
}
