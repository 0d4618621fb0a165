// RUN: tcc-opt %s | tcc-opt | FileCheck %s
// Every family prints what it parses.

// CHECK: #[[SYMBOLIC:.+]] = affine_map<()[s0] -> (s0, 16)>
// CHECK: graph.symbols = [#graph.symbol<"batch", 1 to 8 by 1>]
module attributes {graph.symbols = [#graph.symbol<"batch", 1 to 8 by 1>]} {
  // CHECK-LABEL: func @families
  func.func @families(%x: tensor<?x16xf32, affine_map<()[s0] -> (s0, 16)>>)
      -> tensor<?xf32, affine_map<()[s0] -> (s0)>> {
    // CHECK: graph.weight "w" : tensor<16x16xf32>
    %w = graph.weight "w" : tensor<16x16xf32>
    // CHECK: graph.matmul {{.*}} {transpose_rhs}
    %0 = graph.matmul %x, %w {transpose_rhs}
      : (tensor<?x16xf32, affine_map<()[s0] -> (s0, 16)>>, tensor<16x16xf32>)
      -> tensor<?x16xf32, affine_map<()[s0] -> (s0, 16)>>
    // CHECK: graph.softmax {{.*}} {axis = 1 : i64}
    %1 = graph.softmax %0 {axis = 1 : i64}
      : (tensor<?x16xf32, affine_map<()[s0] -> (s0, 16)>>)
      -> tensor<?x16xf32, affine_map<()[s0] -> (s0, 16)>>
    // CHECK: graph.fused <pointwise>
    %2 = graph.fused <pointwise> (%1)
      : (tensor<?x16xf32, affine_map<()[s0] -> (s0, 16)>>)
      -> tensor<?x16xf32, affine_map<()[s0] -> (s0, 16)>> {
    ^bb0(%a: tensor<?x16xf32, affine_map<()[s0] -> (s0, 16)>>):
      %b = graph.exp %a : (tensor<?x16xf32, affine_map<()[s0] -> (s0, 16)>>)
        -> tensor<?x16xf32, affine_map<()[s0] -> (s0, 16)>>
      graph.yield %b : tensor<?x16xf32, affine_map<()[s0] -> (s0, 16)>>
    }
    // CHECK: graph.reduce <sum> {{.*}} [1]
    %3 = graph.reduce <sum> %2 [1]
      : (tensor<?x16xf32, affine_map<()[s0] -> (s0, 16)>>)
      -> tensor<?xf32, affine_map<()[s0] -> (s0)>>
    return %3 : tensor<?xf32, affine_map<()[s0] -> (s0)>>
  }

  // CHECK-LABEL: func @control
  func.func @control(%flag: tensor<i1>, %n: tensor<i64>, %x: tensor<4xf32>)
      -> (tensor<4xf32>, tensor<3x4xf32>) {
    // CHECK: graph.if
    %0 = graph.if %flag : (tensor<i1>) -> tensor<4xf32> {
      graph.yield %x : tensor<4xf32>
    } else {
      %neg = graph.neg %x : (tensor<4xf32>) -> tensor<4xf32>
      graph.yield %neg : tensor<4xf32>
    }
    // CHECK: graph.loop trips
    %1:2 = graph.loop trips %n : tensor<i64> inits %0 : tensor<4xf32>
        -> tensor<4xf32>, tensor<3x4xf32> {
    ^bb0(%i: tensor<i64>, %y: tensor<4xf32>):
      %true = graph.constant dense<true> : tensor<i1>
      %next = graph.add %y, %y : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      graph.yield %true, %next, %y : tensor<i1>, tensor<4xf32>, tensor<4xf32>
    }
    return %1#0, %1#1 : tensor<4xf32>, tensor<3x4xf32>
  }
}
