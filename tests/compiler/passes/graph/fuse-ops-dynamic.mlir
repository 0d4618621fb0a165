// RUN: tcc-opt %s --tcc-fuse-ops --tcc-verify-fusion | FileCheck %s
// Extents that are products of symbols compare equal through reshapes.
// CHECK-LABEL: func @dynamic
// CHECK:         graph.fused <row>
// CHECK:           graph.add
// CHECK:           graph.layer_norm
// CHECK-NOT:     = graph.fused
#flat = affine_map<()[s0] -> (s0 * 16, 64)>
#split = affine_map<()[s0] -> (s0, 16, 64)>
module attributes {graph.symbols = [#graph.symbol<"batch", 1 to 8 by 1>]} {
func.func @dynamic(%x: tensor<?x64xf32, #flat>, %y: tensor<?x16x64xf32, #split>)
    -> tensor<?x16x64xf32, #split> {
  %v = graph.reshape %x : (tensor<?x64xf32, #flat>) -> tensor<?x16x64xf32, #split>
  %a = graph.add %v, %y : (tensor<?x16x64xf32, #split>, tensor<?x16x64xf32, #split>) -> tensor<?x16x64xf32, #split>
  %n = graph.layer_norm %a {axis = 2 : i64, epsilon = 1.0e-5 : f64} : tensor<?x16x64xf32, #split> -> tensor<?x16x64xf32, #split>
  return %n : tensor<?x16x64xf32, #split>
}
}
