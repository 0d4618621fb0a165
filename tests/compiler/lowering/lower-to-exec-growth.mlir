// RUN: tcc-opt %s --tcc-lower-to-exec | FileCheck %s

// A carried value that each iteration makes one longer: its extent is set before
// the loop and after each iteration, and halves have room for one more than the
// bound, which is checked once the value is written.
// CHECK-DAG: #[[NEXT:.+]] = affine_map<()[s0] -> (s0 + 1)>
// CHECK-DAG: #[[TWO:.+]] = affine_map<() -> (2)>
// CHECK: exec.buffer scratch bytes #{{.+}} bound 256
// CHECK: exec.set_size 0 to #[[TWO]] in 2 to 16 node "node" what "size 'v'"
// CHECK: exec.loop
// CHECK: exec.launch
// CHECK: exec.set_size 0 to #[[NEXT]] in 2 to 16 node "node" what "size 'v'"
#n = affine_map<()[s0] -> (s0)>
#more = affine_map<()[s0] -> (s0 + 1)>
module attributes {graph.symbols = [#graph.symbol<"v", 2 to 16 by 1 computed>]} {
  func.func @main(%t: tensor<i64>, %x: tensor<2xf32>) -> tensor<?xf32, #n> {
    %z = graph.loop trips %t : tensor<i64> inits %x : tensor<2xf32>
        -> tensor<?xf32, #n> {
    ^bb0(%i: tensor<i64>, %a: tensor<?xf32, #n>):
      %yes = graph.constant dense<true> : tensor<i1>
      %b = graph.fused <pointwise> (%a) : (tensor<?xf32, #n>)
          -> tensor<?xf32, #more> {
      ^bb0(%c: tensor<?xf32, #n>):
        %one = graph.constant dense<1.0> : tensor<1xf32>
        %d = graph.concat %c, %one {axis = 0 : i64}
          : (tensor<?xf32, #n>, tensor<1xf32>) -> tensor<?xf32, #more>
        graph.yield %d : tensor<?xf32, #more>
      }
      graph.yield %yes, %b : tensor<i1>, tensor<?xf32, #more>
    } loc("node")
    return %z : tensor<?xf32, #n>
  }
}
