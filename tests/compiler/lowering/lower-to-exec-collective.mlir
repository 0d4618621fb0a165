// RUN: tcc-opt %s --tcc-fuse-ops --tcc-lower-to-exec | FileCheck %s
// A collective is no part of a kernel: it is started and waited for, and writes
// to where its result is needed.

// CHECK-LABEL: exec.entry @main
// CHECK:         %[[X:.+]] = exec.buffer input 0
// CHECK:         %[[Y:.+]] = exec.buffer output 0
// CHECK:         exec.launch @{{.*}} ins(%[[X]]) outs(%[[A:.+]]) node
// CHECK:         %[[T:.+]] = exec.start_all_reduce %[[A]] to %[[Y]] as f32 count #map{{.*}} {group = 3 : i64, node = "graph.all_reduce", tree}
// CHECK-NEXT:    exec.wait %[[T]]
func.func @main(%x: tensor<4x2xf32> {graph.name = "x"}) -> (tensor<4x2xf32> {graph.name = "y"}) {
  %0 = graph.exp %x : (tensor<4x2xf32>) -> tensor<4x2xf32>
  %1 = graph.all_reduce %0 {group = 3 : i64, tree} : tensor<4x2xf32>
  return %1 : tensor<4x2xf32>
}
