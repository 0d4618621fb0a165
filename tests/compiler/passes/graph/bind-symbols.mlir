// RUN: tcc-opt %s --tcc-bind-symbols=values=n=3 | FileCheck %s
// RUN: tcc-opt %s --tcc-bind-symbols=values=n=3,m=5 --tcc-simplify | FileCheck %s --check-prefix=BOTH
// RUN: not tcc-opt %s --tcc-bind-symbols=values=n=9 2>&1 | FileCheck %s --check-prefix=RANGE
// RUN: not tcc-opt %s --tcc-bind-symbols=values=k=2 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not tcc-opt %s --tcc-bind-symbols=values=n 2>&1 | FileCheck %s --check-prefix=TEXT

// The types and expressions of one symbol become those of its value; another
// symbol takes its number.
// CHECK-DAG: #[[INPUT:.+]] = affine_map<()[s0] -> (3, s0)>
// CHECK-DAG: #[[FLAT:.+]] = affine_map<()[s0] -> (s0 * 3)>
// CHECK-DAG: #[[STARTS:.+]] = affine_map<() -> (2, 0)>
// CHECK-DAG: #[[SIZE:.+]] = affine_map<()[s0] -> (s0 + 3)>
// CHECK: graph.symbols = [#graph.symbol<"m", 2 to 6 by 1>]
module attributes {graph.symbols = [#graph.symbol<"n", 1 to 8 by 1>,
                                    #graph.symbol<"m", 2 to 6 by 1>]} {
  // CHECK: func.func @main(%arg0: tensor<3x?xf32, #[[INPUT]]>
  // CHECK-SAME: tensor<?xf32, #[[FLAT]]>
  // CHECK: graph.slice %arg0 {starts = #[[STARTS]]
  // CHECK: graph.size #[[SIZE]]
  // BOTH-LABEL: func.func @main(%arg0: tensor<3x5xf32>) -> (tensor<15xf32>, tensor<1x5xf32>, tensor<i64>)
  // BOTH: graph.constant dense<8> : tensor<i64>
  // BOTH: graph.slice %arg0
  func.func @main(%x: tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1)>>)
      -> (tensor<?xf32, affine_map<()[s0, s1] -> (s0 * s1)>>,
          tensor<1x?xf32, affine_map<()[s0, s1] -> (1, s1)>>, tensor<i64>) {
    %0 = graph.reshape %x
      : (tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1)>>)
      -> tensor<?xf32, affine_map<()[s0, s1] -> (s0 * s1)>>
    %1 = graph.slice %x {starts = affine_map<()[s0] -> (s0 - 1, 0)>,
                         steps = array<i64: 1, 1>}
      : (tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1)>>)
      -> tensor<1x?xf32, affine_map<()[s0, s1] -> (1, s1)>>
    %2 = graph.size affine_map<()[s0, s1] -> (s0 + s1)>
    return %0, %1, %2 : tensor<?xf32, affine_map<()[s0, s1] -> (s0 * s1)>>,
      tensor<1x?xf32, affine_map<()[s0, s1] -> (1, s1)>>, tensor<i64>
  }
}
// RANGE: error: symbol 'n' cannot be 9: it is in 1..8
// NAME: error: no symbol is named 'k'
// TEXT: error: expected NAME=N, found 'n'
