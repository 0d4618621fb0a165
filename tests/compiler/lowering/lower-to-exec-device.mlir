// RUN: tcc-opt %s --tcc-set-target=name=cuda --tcc-lower-to-exec --tcc-select-kernels \
// RUN:   | FileCheck %s

// All lies on the device but `prepare`, which computes constants on the host.
// Equal kernels of the two are two.
// CHECK:       exec.kernel @k0_{{.*}} {
// CHECK:       exec.kernel @k1_{{.*}} attributes {target = "cuda", threads = 256 : i64}
// CHECK:       exec.entry @prepare
// CHECK-COUNT-2: exec.buffer {{.*}} !exec.buffer<host>
// CHECK:         exec.launch @k0
// CHECK:       exec.entry @main
// CHECK-COUNT-2: exec.buffer {{.*}} !exec.buffer<device>
// CHECK:         exec.launch @k1{{.*}} tasks #{{.+}} node
func.func @prepare(%w: tensor<4096xf32> {graph.name = "w"})
    -> (tensor<4096xf32> {graph.name = "v"}) {
  %0 = graph.fused <pointwise> (%w) : (tensor<4096xf32>) -> tensor<4096xf32> {
  ^bb0(%a: tensor<4096xf32>):
    %b = graph.exp %a : (tensor<4096xf32>) -> tensor<4096xf32>
    graph.yield %b : tensor<4096xf32>
  }
  return %0 : tensor<4096xf32>
}
func.func @main(%x: tensor<4096xf32>) -> tensor<4096xf32> {
  %0 = graph.fused <pointwise> (%x) : (tensor<4096xf32>) -> tensor<4096xf32> {
  ^bb0(%a: tensor<4096xf32>):
    %b = graph.exp %a : (tensor<4096xf32>) -> tensor<4096xf32>
    graph.yield %b : tensor<4096xf32>
  }
  return %0 : tensor<4096xf32>
}
