// RUN: tcc-opt %s --tcc-lower-to-exec | FileCheck %s

// Commands set the slots of computed symbols.
// CHECK-DAG: #[[ONE:.+]] = affine_map<() -> (1)>
// CHECK-DAG: #[[FOUR:.+]] = affine_map<() -> (4)>
// CHECK: exec.entry @main
// CHECK: exec.buffer output 0 bytes #{{.+}} bound 32
// CHECK: exec.read_size 0 from %{{.+}} as i64 in 0 to 8 node "node" what "size 'y'"
// CHECK: exec.if
// CHECK: exec.set_size 1 to #[[ONE]]
// CHECK: exec.set_size 1 to #[[FOUR]]
module attributes {graph.symbols = [#graph.symbol<"y", 0 to 8 by 1 computed>,
                                    #graph.symbol<"z", 1 to 4 by 1 computed>]} {
  func.func @main(%n: tensor<i64>, %x: tensor<8xf32>, %c: tensor<i1>,
                  %p: tensor<1xf32>, %q: tensor<4xf32>)
      -> (tensor<?xf32, affine_map<()[s0] -> (s0)>>,
          tensor<?xf32, affine_map<()[s0, s1] -> (s1)>>) {
    graph.read_size %n to affine_map<()[s0] -> (s0)> {what = "size 'y'"}
      : tensor<i64> loc("node")
    %y = graph.fused <pointwise> (%x) : (tensor<8xf32>)
        -> tensor<?xf32, affine_map<()[s0] -> (s0)>> {
    ^bb0(%a: tensor<8xf32>):
      %b = graph.slice %a {starts = affine_map<() -> (0)>, steps = array<i64: 1>}
        : (tensor<8xf32>) -> tensor<?xf32, affine_map<()[s0] -> (s0)>>
      graph.yield %b : tensor<?xf32, affine_map<()[s0] -> (s0)>>
    }
    %z = graph.if %c : (tensor<i1>)
        -> tensor<?xf32, affine_map<()[s0, s1] -> (s1)>> {
      graph.yield %p : tensor<1xf32>
    } else {
      graph.yield %q : tensor<4xf32>
    }
    return %y, %z : tensor<?xf32, affine_map<()[s0] -> (s0)>>,
      tensor<?xf32, affine_map<()[s0, s1] -> (s1)>>
  }
}
