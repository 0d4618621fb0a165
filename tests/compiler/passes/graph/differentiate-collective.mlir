// RUN: tcc-opt %s '--tcc-differentiate=of=y wrt=x' --tcc-simplify | FileCheck %s
// The gradient of a sum over ranks is the sum of their gradients, in its group.

// CHECK-LABEL: func.func @main
// CHECK:         graph.all_reduce %{{.*}} {group = 1 : i64}
// CHECK:         %[[DY:.*]] = graph.broadcast
// CHECK:         %[[DX:.*]] = graph.all_reduce %[[DY]] {group = 1 : i64}
// CHECK:         return %{{.*}}, %[[DX]]
func.func @main(%x: tensor<4xf32> {graph.name = "x"}) -> (tensor<f32> {graph.name = "y"}) {
  %0 = graph.all_reduce %x {group = 1 : i64} : tensor<4xf32>
  %1 = graph.reduce <sum> %0 [0] : (tensor<4xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}
