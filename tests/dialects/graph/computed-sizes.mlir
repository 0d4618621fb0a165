// RUN: tcc-opt %s --verify-roundtrip | FileCheck %s

// CHECK: #graph.symbol<"y.0", 0 to 64 by 1 computed within <#{{.+}} to 64>>
module attributes {graph.symbols = [
    #graph.symbol<"n", 1 to 8 by 1>,
    #graph.symbol<"y.0", 0 to 64 by 1 computed
      within <affine_map<()[s0, s1, s2] -> (s1 * s2)> to 64>>,
    #graph.symbol<"y.1", 0 to 64 by 1 computed
      within <affine_map<()[s0, s1, s2] -> (s1 * s2)> to 64>>,
    #graph.symbol<"z.0", 1 to 4 by 1 computed>]} {
  func.func @main(%x: tensor<8x8xf32>, %a: tensor<i64>, %b: tensor<1xi32>,
                  %c: tensor<i1>, %p: tensor<1xf32>, %q: tensor<4xf32>)
      -> (tensor<?x?xf32, affine_map<()[s0, s1, s2] -> (s1, s2)>>,
          tensor<?xf32, affine_map<()[s0, s1, s2, s3] -> (s3)>>) {
    // CHECK: graph.read_size %{{.+}} to #{{.+}} {what = "size 'y.0'"} : tensor<i64>
    graph.read_size %a to affine_map<()[s0, s1] -> (s1)> {what = "size 'y.0'"}
      : tensor<i64>
    graph.read_size %b to affine_map<()[s0, s1, s2] -> (s2)>
      {what = "size 'y.1'"} : tensor<1xi32>
    // A run checks that there are as many elements.
    %y = graph.reshape %x : (tensor<8x8xf32>)
      -> tensor<?x?xf32, affine_map<()[s0, s1, s2] -> (s1, s2)>>
    // The branch that is taken sets the extent.
    %z = graph.if %c : (tensor<i1>)
        -> tensor<?xf32, affine_map<()[s0, s1, s2, s3] -> (s3)>> {
      graph.yield %p : tensor<1xf32>
    } else {
      graph.yield %q : tensor<4xf32>
    }
    return %y, %z : tensor<?x?xf32, affine_map<()[s0, s1, s2] -> (s1, s2)>>,
      tensor<?xf32, affine_map<()[s0, s1, s2, s3] -> (s3)>>
  }
}
