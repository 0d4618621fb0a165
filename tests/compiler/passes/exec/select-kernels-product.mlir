// RUN: tcc-opt %s --tcc-select-kernels | FileCheck %s
// A kernel is described for a library where it is a product and its epilogue.

// The residual has the place of the addend, and is read where its batch lies:
// rows of all the batch are one matrix.
// CHECK:       exec.kernel @epilogue
// CHECK-SAME:    library = #exec.library_work<product,
// CHECK-SAME:    lhs = <0 : bf16, ()[s0] -> (0, 1, s0 * 16, 32, 0, 32, 1)>,
// CHECK-SAME:    rhs = <1 : bf16, () -> (0, 1, 32, 8, 0, 1, 32)>,
// CHECK-SAME:    result = <4 : bf16, ()[s0] -> (0, 1, s0 * 16, 8, 0, 8, 1)>,
// CHECK-SAME:    steps = [#exec.step<scale by 5.000000e-01 : f64>,
// CHECK-SAME:    #exec.step<add of <3 : bf16, ()[s0] -> (0, 1, s0 * 16, 8, 0, 8, 1)>>,
// CHECK-SAME:    #exec.step<bias of <2 : bf16, ()[s0] -> (0, 1, s0 * 16, 8, 0, 0, 1)>>,
// CHECK-SAME:    #exec.step<relu>]>
// CHECK:       exec.kernel @computed
// CHECK-NOT:     library =
// CHECK:       exec.kernel @erf
// CHECK-NOT:     library =
// CHECK:       exec.entry @main
// CHECK-SAME:    workspace_bytes = 32768
module attributes {graph.symbols = [#graph.symbol<"n", 1 to 4 by 1>]} {
exec.kernel @epilogue attributes {target = "cuda"} {
^bb0(%x: tensor<?x16x32xbf16, affine_map<()[s0] -> (s0, 16, 32)>>, %w: tensor<8x32xbf16>,
     %b: tensor<8xbf16>, %r: tensor<?x16x8xbf16, affine_map<()[s0] -> (s0, 16, 8)>>):
  %y = graph.fused <contraction> (%x, %w, %b, %r)
      : (tensor<?x16x32xbf16, affine_map<()[s0] -> (s0, 16, 32)>>, tensor<8x32xbf16>, tensor<8xbf16>,
         tensor<?x16x8xbf16, affine_map<()[s0] -> (s0, 16, 8)>>)
      -> tensor<?x16x8xbf16, affine_map<()[s0] -> (s0, 16, 8)>> {
  ^bb0(%p: tensor<?x16x32xbf16, affine_map<()[s0] -> (s0, 16, 32)>>, %q: tensor<8x32xbf16>,
       %c: tensor<8xbf16>, %d: tensor<?x16x8xbf16, affine_map<()[s0] -> (s0, 16, 8)>>):
    %m = graph.matmul %p, %q {transpose_rhs}
      : (tensor<?x16x32xbf16, affine_map<()[s0] -> (s0, 16, 32)>>, tensor<8x32xbf16>)
      -> tensor<?x16x8xf32, affine_map<()[s0] -> (s0, 16, 8)>>
    %h = graph.constant dense<0.5> : tensor<f32>
    %hb = graph.broadcast %h : (tensor<f32>) -> tensor<?x16x8xf32, affine_map<()[s0] -> (s0, 16, 8)>>
    %s = graph.mul %m, %hb : (tensor<?x16x8xf32, affine_map<()[s0] -> (s0, 16, 8)>>, tensor<?x16x8xf32, affine_map<()[s0] -> (s0, 16, 8)>>) -> tensor<?x16x8xf32, affine_map<()[s0] -> (s0, 16, 8)>>
    %cb = graph.broadcast %c : (tensor<8xbf16>) -> tensor<?x16x8xbf16, affine_map<()[s0] -> (s0, 16, 8)>>
    %cf = graph.cast %cb : (tensor<?x16x8xbf16, affine_map<()[s0] -> (s0, 16, 8)>>) -> tensor<?x16x8xf32, affine_map<()[s0] -> (s0, 16, 8)>>
    %a = graph.add %s, %cf : (tensor<?x16x8xf32, affine_map<()[s0] -> (s0, 16, 8)>>, tensor<?x16x8xf32, affine_map<()[s0] -> (s0, 16, 8)>>) -> tensor<?x16x8xf32, affine_map<()[s0] -> (s0, 16, 8)>>
    %df = graph.cast %d : (tensor<?x16x8xbf16, affine_map<()[s0] -> (s0, 16, 8)>>) -> tensor<?x16x8xf32, affine_map<()[s0] -> (s0, 16, 8)>>
    %e = graph.add %a, %df : (tensor<?x16x8xf32, affine_map<()[s0] -> (s0, 16, 8)>>, tensor<?x16x8xf32, affine_map<()[s0] -> (s0, 16, 8)>>) -> tensor<?x16x8xf32, affine_map<()[s0] -> (s0, 16, 8)>>
    %f = graph.relu %e : (tensor<?x16x8xf32, affine_map<()[s0] -> (s0, 16, 8)>>) -> tensor<?x16x8xf32, affine_map<()[s0] -> (s0, 16, 8)>>
    %g = graph.cast %f : (tensor<?x16x8xf32, affine_map<()[s0] -> (s0, 16, 8)>>) -> tensor<?x16x8xbf16, affine_map<()[s0] -> (s0, 16, 8)>>
    graph.yield %g : tensor<?x16x8xbf16, affine_map<()[s0] -> (s0, 16, 8)>>
  }
}
exec.kernel @computed attributes {target = "cuda"} {
^bb0(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>):
  %y = graph.fused <contraction> (%x, %w) : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32> {
  ^bb0(%p: tensor<4x8xf32>, %q: tensor<8x8xf32>):
    %r = graph.relu %p : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %m = graph.matmul %r, %q : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    graph.yield %m : tensor<4x8xf32>
  }
}
exec.kernel @erf attributes {target = "cuda"} {
^bb0(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>):
  %y = graph.fused <contraction> (%x, %w) : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32> {
  ^bb0(%p: tensor<4x8xf32>, %q: tensor<8x8xf32>):
    %m = graph.matmul %p, %q : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %g = graph.gelu %m : (tensor<4x8xf32>) -> tensor<4x8xf32>
    graph.yield %g : tensor<4x8xf32>
  }
}
exec.constant "w" : tensor<8x32xbf16>
exec.constant "b" : tensor<8xbf16>
exec.entry @main inputs [#exec.tensor<"x", tensor<?x16x32xbf16, affine_map<()[s0] -> (s0, 16, 32)>>>,
    #exec.tensor<"r", tensor<?x16x8xbf16, affine_map<()[s0] -> (s0, 16, 8)>>>]
    outputs [#exec.tensor<"y", tensor<?x16x8xbf16, affine_map<()[s0] -> (s0, 16, 8)>>>]
    attributes {slots = 1 : i64} {
  %x = exec.buffer input 0 bytes affine_map<()[s0] -> (s0 * 1024)> bound 4096 : !exec.buffer<device>
  %w = exec.buffer constant 0 bytes affine_map<()[s0] -> (512)> bound 512 : !exec.buffer<device>
  %b = exec.buffer constant 1 bytes affine_map<()[s0] -> (16)> bound 16 : !exec.buffer<device>
  %r = exec.buffer input 1 bytes affine_map<()[s0] -> (s0 * 256)> bound 1024 : !exec.buffer<device>
  %y = exec.buffer output 0 bytes affine_map<()[s0] -> (s0 * 256)> bound 1024 : !exec.buffer<device>
  exec.launch @epilogue ins(%x, %w, %b, %r) outs(%y) node "m"
    : (!exec.buffer<device>, !exec.buffer<device>, !exec.buffer<device>, !exec.buffer<device>) -> !exec.buffer<device>
}
}
