// RUN: tcc-opt %s --tcc-split-prepare --split-input-file | FileCheck %s

// Nothing is computed from weights alone: there is no @prepare.
// CHECK:     graph.weight "w"
// CHECK-NOT: @prepare
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %w = graph.weight "w" : tensor<4xf32>
  %y = graph.add %x, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// What has as many elements as the batch cannot be stored.
// CHECK:     graph.weight "table"
// CHECK:     graph.gather
// CHECK-NOT: @prepare
module attributes {graph.symbols = [#graph.symbol<"batch", 1 to 8 by 1>]} {
  func.func @main() -> tensor<?x2xf32, affine_map<()[s0] -> (s0, 2)>> {
    %table = graph.weight "table" : tensor<8x2xf32>
    %i = graph.iota {axis = 0} : () -> tensor<?xi64, affine_map<()[s0] -> (s0)>>
    %y = graph.gather %table, %i {axis = 0 : i64}
      : (tensor<8x2xf32>, tensor<?xi64, affine_map<()[s0] -> (s0)>>)
      -> tensor<?x2xf32, affine_map<()[s0] -> (s0, 2)>>
    return %y : tensor<?x2xf32, affine_map<()[s0] -> (s0, 2)>>
  }
}

// -----

// What nobody reads is no reader of what could be stored.
// CHECK-LABEL: func.func @unread
// CHECK-NEXT:    return
// CHECK-NOT:     @prepare
module attributes {graph.symbols = [#graph.symbol<"batch", 1 to 8 by 1>]} {
  func.func @unread(%x: tensor<?x2xf32, affine_map<()[s0] -> (s0, 2)>>)
      -> tensor<?x2xf32, affine_map<()[s0] -> (s0, 2)>> {
    %w = graph.weight "w" : tensor<2xf32>
    %e = graph.exp %w : (tensor<2xf32>) -> tensor<2xf32>
    %dead = graph.broadcast %e
      : (tensor<2xf32>) -> tensor<?x2xf32, affine_map<()[s0] -> (s0, 2)>>
    return %x : tensor<?x2xf32, affine_map<()[s0] -> (s0, 2)>>
  }
}
