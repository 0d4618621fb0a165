// RUN: tcc-opt %s --tcc-phase-simplify=target=null --tcc-phase-fuse=target=null \
// RUN:   --tcc-phase-lower --tcc-phase-plan | FileCheck %s

// A target that is a folder and a line: passes ask it, and nothing else.
// The weight is not packed into panels, as for the CPU.

// CHECK:     module attributes {{{.*}}graph.target = "null"
// CHECK:     exec.constant "w" : tensor<64x64xf32>
// CHECK:     exec.kernel @[[PRODUCT:.*]] attributes {target = "null", threads = 1 : i64}
// CHECK:       graph.matmul %{{.*}} : (tensor<64x64xf32>, tensor<64x64xf32>)
// CHECK:     exec.kernel @[[ROW:.*]] attributes {target = "null", threads = 1 : i64}
// CHECK:     exec.entry @main
// CHECK:       exec.buffer output {{.*}} !exec.buffer<device>
// CHECK:       exec.launch @[[PRODUCT]]
// CHECK-NEXT:  exec.launch @[[ROW]]

func.func @main(%x: tensor<64x64xf32> {graph.name = "x"})
    -> (tensor<64x64xf32> {graph.name = "y"}) {
  %w = graph.weight "w" : tensor<64x64xf32>
  %0 = graph.matmul %x, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = graph.relu %0 : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = graph.softmax %1 {axis = 1 : i64} : (tensor<64x64xf32>) -> tensor<64x64xf32>
  return %2 : tensor<64x64xf32>
}
