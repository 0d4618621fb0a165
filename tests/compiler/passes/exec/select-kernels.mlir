// RUN: tcc-opt %s --tcc-lower-to-exec --tcc-select-kernels --split-input-file \
// RUN:   | FileCheck %s

// A launch gets the sizes that its kernel reads, its tasks (of 16384 elements
// each) and its work.
// CHECK-DAG:   #[[N:.+]] = affine_map<()[s0] -> (s0)>
// CHECK-DAG:   #[[BYTES:.+]] = affine_map<()[s0] -> (s0 * 131072)>
// CHECK:       exec.entry @main
// CHECK-SAME:    worker_bytes = 0
// CHECK:         exec.launch @k0{{.*}} sizes #[[N]] tasks #[[N]] node
// CHECK-SAME:      bytes = #[[BYTES]]
// CHECK-SAME:      flops =
module attributes {graph.symbols = [#graph.symbol<"n", 1 to 8 by 1>]} {
  func.func @main(%x: tensor<?x16384xf32, affine_map<()[s0] -> (s0, 16384)>>)
      -> tensor<?x16384xf32, affine_map<()[s0] -> (s0, 16384)>> {
    %0 = graph.fused <pointwise> (%x)
        : (tensor<?x16384xf32, affine_map<()[s0] -> (s0, 16384)>>)
          -> tensor<?x16384xf32, affine_map<()[s0] -> (s0, 16384)>> {
    ^bb0(%a: tensor<?x16384xf32, affine_map<()[s0] -> (s0, 16384)>>):
      %b = graph.exp %a
        : (tensor<?x16384xf32, affine_map<()[s0] -> (s0, 16384)>>)
          -> tensor<?x16384xf32, affine_map<()[s0] -> (s0, 16384)>>
      graph.yield %b : tensor<?x16384xf32, affine_map<()[s0] -> (s0, 16384)>>
    }
    return %0 : tensor<?x16384xf32, affine_map<()[s0] -> (s0, 16384)>>
  }
}

// -----

// A kernel that reads indices from data reports bad ones in the fault buffer. Of
// what it reads by them it moves two rows.
// CHECK:       #[[BYTES:.+]] = affine_map<() -> (144)>
// CHECK:       exec.entry @main
// CHECK:         %[[F:[0-9]+]] = exec.buffer fault
// CHECK:         exec.launch @k0{{.*}} fault(%[[F]] :
// CHECK-SAME:      bytes = #[[BYTES]]
func.func @main(%x: tensor<4x8xf32>, %i: tensor<2xi64>) -> tensor<2x8xf32> {
  %0 = graph.fused <pointwise> (%x, %i)
      : (tensor<4x8xf32>, tensor<2xi64>) -> tensor<2x8xf32> {
  ^bb0(%a: tensor<4x8xf32>, %b: tensor<2xi64>):
    %c = graph.gather %a, %b {axis = 0}
      : (tensor<4x8xf32>, tensor<2xi64>) -> tensor<2x8xf32>
    graph.yield %c : tensor<2x8xf32>
  }
  return %0 : tensor<2x8xf32>
}

// -----

// Workers get scratch for what the widest kernel keeps of a row.
// CHECK:       exec.entry @main
// CHECK-SAME:    worker_bytes = 256
func.func @main(%x: tensor<4x64xf32>) -> tensor<4x64xf32> {
  %0 = graph.fused <row> (%x) : (tensor<4x64xf32>) -> tensor<4x64xf32> {
  ^bb0(%a: tensor<4x64xf32>):
    %b = graph.softmax %a {axis = 1 : i64}
      : (tensor<4x64xf32>) -> tensor<4x64xf32>
    graph.yield %b : tensor<4x64xf32>
  }
  return %0 : tensor<4x64xf32>
}

// -----

// Results that are views inside of a kernel are the bytes of what they view.
// CHECK:       exec.entry @main
// CHECK:         exec.launch @k0{{.*}} tasks
func.func @main(%x: tensor<4x64xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0:2 = graph.fused <row> (%x)
      : (tensor<4x64xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  ^bb0(%a: tensor<4x64xf32>):
    %b = graph.reduce <max> %a [1] : (tensor<4x64xf32>) -> tensor<4xf32>
    %c = graph.reduce <sum> %a [1] : (tensor<4x64xf32>) -> tensor<4xf32>
    %d = graph.reshape %b : (tensor<4xf32>) -> tensor<4x1xf32>
    %e = graph.reshape %c : (tensor<4xf32>) -> tensor<4x1xf32>
    %f = graph.reshape %d : (tensor<4x1xf32>) -> tensor<4xf32>
    %g = graph.reshape %e : (tensor<4x1xf32>) -> tensor<4xf32>
    graph.yield %f, %g : tensor<4xf32>, tensor<4xf32>
  }
  return %0#0, %0#1 : tensor<4xf32>, tensor<4xf32>
}
