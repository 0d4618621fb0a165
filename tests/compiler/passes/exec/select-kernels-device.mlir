// RUN: tcc-opt %s --tcc-select-kernels | FileCheck %s

// A kernel may count on what all its launches have: here one reads from a view
// that starts at a multiple of four bytes.
// CHECK:       exec.kernel @aligned
// CHECK-NOT:     alignments
// CHECK:       exec.kernel @unaligned
// CHECK:         alignments = array<i64: 4, 16>
exec.kernel @aligned attributes {target = "cuda"} {
^bb0(%x: tensor<256xf32>):
  %y = graph.fused <pointwise> (%x) : (tensor<256xf32>) -> tensor<256xf32> {
  ^bb0(%a: tensor<256xf32>):
    %b = graph.abs %a : (tensor<256xf32>) -> tensor<256xf32>
    graph.yield %b : tensor<256xf32>
  }
}
exec.kernel @unaligned attributes {target = "cuda"} {
^bb0(%x: tensor<256xf32>):
  %y = graph.fused <pointwise> (%x) : (tensor<256xf32>) -> tensor<256xf32> {
  ^bb0(%a: tensor<256xf32>):
    %b = graph.exp %a : (tensor<256xf32>) -> tensor<256xf32>
    graph.yield %b : tensor<256xf32>
  }
}
exec.entry @main inputs [#exec.tensor<"x", tensor<2000xf32>>]
    outputs [#exec.tensor<"y", tensor<256xf32>>] attributes {slots = 1 : i64} {
  %x = exec.buffer input 0 bytes affine_map<()[s0] -> (8000)> bound 8000
    : !exec.buffer<device>
  %t = exec.buffer scratch bytes affine_map<()[s0] -> (1024)> bound 1024
    : !exec.buffer<device>
  %y = exec.buffer output 0 bytes affine_map<()[s0] -> (1024)> bound 1024
    : !exec.buffer<device>
  %u = exec.buffer scratch bytes affine_map<()[s0] -> (1024)> bound 1024
    : !exec.buffer<device>
  exec.set_size 0 to affine_map<()[s0] -> (3)>
  %v = exec.view %x at affine_map<()[s0] -> (s0 * 100)>
    bytes affine_map<()[s0] -> (1024)> bound 1024 : !exec.buffer<device>
  exec.launch @unaligned ins(%v) outs(%t) node "exp"
    : (!exec.buffer<device>) -> !exec.buffer<device>
  exec.launch @unaligned ins(%t) outs(%u) node "exp"
    : (!exec.buffer<device>) -> !exec.buffer<device>
  exec.launch @aligned ins(%u) outs(%y) node "abs"
    : (!exec.buffer<device>) -> !exec.buffer<device>
}
