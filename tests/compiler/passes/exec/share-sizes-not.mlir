// RUN: tcc-opt %s --tcc-lower-to-exec --tcc-generalize-sizes --tcc-merge-kernels --tcc-select-kernels | FileCheck %s

// What decides how a kernel is computed is its own: few elements; sizes of another order of
// magnitude; loops that do not walk along memory; what is computed of several ops; the rows
// of a panel, which are one task.
// CHECK-COUNT-10: exec.kernel @k{{[0-9]}}{{[a-z_0-9]*}} {
// CHECK-NOT: bindings
func.func @main(
    %x0: tensor<40x8xf32>, %v0: tensor<8xf32>, %x1: tensor<40x12xf32>, %v1: tensor<12xf32>,
    %x2: tensor<40x20xf32>, %v2: tensor<20xf32>, %x3: tensor<40x1280xf32>, %v3: tensor<1280xf32>,
    %x4: tensor<128x8x64xi8>, %x5: tensor<128x8x96xi8>, %x6: tensor<40x96xf32>,
    %x7: tensor<40x160xf32>, %x8: tensor<4x80x128xf32>, %x9: tensor<4x96x128xf32>)
    -> (tensor<40x8xf32>, tensor<40x12xf32>, tensor<40x20xf32>, tensor<40x1280xf32>,
    tensor<8x128x64xi8>, tensor<8x128x96xi8>, tensor<40x96xf32>, tensor<40x160xf32>,
    tensor<4x80xf32>, tensor<4x128xf32>, tensor<4x96xf32>, tensor<4x128xf32>) {
  %0 = graph.fused <pointwise> (%x0, %v0) : (tensor<40x8xf32>, tensor<8xf32>) -> tensor<40x8xf32> {
  ^bb0(%a: tensor<40x8xf32>, %b: tensor<8xf32>):
    %c = graph.broadcast %b : (tensor<8xf32>) -> tensor<40x8xf32>
    %d = graph.add %a, %c : (tensor<40x8xf32>, tensor<40x8xf32>) -> tensor<40x8xf32>
    graph.yield %d : tensor<40x8xf32>
  }
  %1 = graph.fused <pointwise> (%x1, %v1) : (tensor<40x12xf32>, tensor<12xf32>) -> tensor<40x12xf32> {
  ^bb0(%a: tensor<40x12xf32>, %b: tensor<12xf32>):
    %c = graph.broadcast %b : (tensor<12xf32>) -> tensor<40x12xf32>
    %d = graph.add %a, %c : (tensor<40x12xf32>, tensor<40x12xf32>) -> tensor<40x12xf32>
    graph.yield %d : tensor<40x12xf32>
  }
  %2 = graph.fused <pointwise> (%x2, %v2) : (tensor<40x20xf32>, tensor<20xf32>) -> tensor<40x20xf32> {
  ^bb0(%a: tensor<40x20xf32>, %b: tensor<20xf32>):
    %c = graph.broadcast %b : (tensor<20xf32>) -> tensor<40x20xf32>
    %d = graph.add %a, %c : (tensor<40x20xf32>, tensor<40x20xf32>) -> tensor<40x20xf32>
    graph.yield %d : tensor<40x20xf32>
  }
  %3 = graph.fused <pointwise> (%x3, %v3) : (tensor<40x1280xf32>, tensor<1280xf32>) -> tensor<40x1280xf32> {
  ^bb0(%a: tensor<40x1280xf32>, %b: tensor<1280xf32>):
    %c = graph.broadcast %b : (tensor<1280xf32>) -> tensor<40x1280xf32>
    %d = graph.add %a, %c : (tensor<40x1280xf32>, tensor<40x1280xf32>) -> tensor<40x1280xf32>
    graph.yield %d : tensor<40x1280xf32>
  }
  %4 = graph.fused <pointwise> (%x4) : (tensor<128x8x64xi8>) -> tensor<8x128x64xi8> {
  ^bb0(%a: tensor<128x8x64xi8>):
    %c = graph.transpose %a [1, 0, 2] : (tensor<128x8x64xi8>) -> tensor<8x128x64xi8>
    graph.yield %c : tensor<8x128x64xi8>
  }
  %5 = graph.fused <pointwise> (%x5) : (tensor<128x8x96xi8>) -> tensor<8x128x96xi8> {
  ^bb0(%a: tensor<128x8x96xi8>):
    %c = graph.transpose %a [1, 0, 2] : (tensor<128x8x96xi8>) -> tensor<8x128x96xi8>
    graph.yield %c : tensor<8x128x96xi8>
  }
  %6 = graph.fused <row> (%x6) : (tensor<40x96xf32>) -> tensor<40x96xf32> {
  ^bb0(%a: tensor<40x96xf32>):
    %c = graph.softmax %a {axis = 1 : i64} : (tensor<40x96xf32>) -> tensor<40x96xf32>
    graph.yield %c : tensor<40x96xf32>
  }
  %7 = graph.fused <row> (%x7) : (tensor<40x160xf32>) -> tensor<40x160xf32> {
  ^bb0(%a: tensor<40x160xf32>):
    %c = graph.softmax %a {axis = 1 : i64} : (tensor<40x160xf32>) -> tensor<40x160xf32>
    graph.yield %c : tensor<40x160xf32>
  }
  %8:2 = graph.fused <row> (%x8) : (tensor<4x80x128xf32>) -> (tensor<4x80xf32>, tensor<4x128xf32>) {
  ^bb0(%a: tensor<4x80x128xf32>):
    %c = graph.reduce <sum> %a [2] : (tensor<4x80x128xf32>) -> tensor<4x80xf32>
    %d = graph.reduce <sum> %a [1] : (tensor<4x80x128xf32>) -> tensor<4x128xf32>
    graph.yield %c, %d : tensor<4x80xf32>, tensor<4x128xf32>
  }
  %9:2 = graph.fused <row> (%x9) : (tensor<4x96x128xf32>) -> (tensor<4x96xf32>, tensor<4x128xf32>) {
  ^bb0(%a: tensor<4x96x128xf32>):
    %c = graph.reduce <sum> %a [2] : (tensor<4x96x128xf32>) -> tensor<4x96xf32>
    %d = graph.reduce <sum> %a [1] : (tensor<4x96x128xf32>) -> tensor<4x128xf32>
    graph.yield %c, %d : tensor<4x96xf32>, tensor<4x128xf32>
  }
  return %0, %1, %2, %3, %4, %5, %6, %7, %8#0, %8#1, %9#0, %9#1 :
    tensor<40x8xf32>, tensor<40x12xf32>, tensor<40x20xf32>, tensor<40x1280xf32>,
    tensor<8x128x64xi8>, tensor<8x128x96xi8>, tensor<40x96xf32>, tensor<40x160xf32>,
    tensor<4x80xf32>, tensor<4x128xf32>, tensor<4x96xf32>, tensor<4x128xf32>
}
