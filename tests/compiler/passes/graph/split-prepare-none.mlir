// RUN: tcc-opt %s --tcc-split-prepare | FileCheck %s

// Nothing is computed from weights alone: there is no @prepare.
// CHECK:     graph.weight "w"
// CHECK-NOT: @prepare
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %w = graph.weight "w" : tensor<4xf32>
  %y = graph.add %x, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
