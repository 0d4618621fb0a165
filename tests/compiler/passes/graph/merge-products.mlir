// RUN: tcc-opt %s --split-input-file --tcc-merge-products | FileCheck %s

// Products of one tensor and the bias and rounding that follow each are one;
// their readers take slices.
// CHECK-DAG:     #[[FIRST:.+]] = affine_map<() -> (0, 0)>
// CHECK-DAG:     #[[SECOND:.+]] = affine_map<() -> (0, 16)>
// CHECK-LABEL: func @projections
// CHECK:         %[[W:.+]] = graph.concat %{{.+}}, %{{.+}} {axis = 1 : i64} {{.*}} -> tensor<8x22xf32>
// CHECK:         %[[M:.+]] = graph.matmul %{{.+}}, %[[W]] : {{.*}} -> tensor<?x22xf32
// CHECK-NEXT:    %[[B:.+]] = graph.concat {{.*}} -> tensor<22xf32>
// CHECK-NEXT:    %[[R:.+]] = graph.broadcast %[[B]]
// CHECK-NEXT:    %[[A:.+]] = graph.add %[[M]], %[[R]]
// CHECK-NEXT:    %[[C:.+]] = graph.cast %[[A]] {{.*}} -> tensor<?x22xbf16
// CHECK-NEXT:    %[[Q:.+]] = graph.slice %[[C]] {starts = #[[FIRST]], {{.*}} -> tensor<?x16xbf16
// CHECK-NEXT:    %[[K:.+]] = graph.slice %[[C]] {starts = #[[SECOND]], {{.*}} -> tensor<?x6xbf16
// CHECK:         graph.transpose %[[Q]]
// CHECK:         graph.transpose %[[K]]
// CHECK-NOT:     = graph.matmul
#n = affine_map<()[s0] -> (s0, 8)>
#q = affine_map<()[s0] -> (s0, 16)>
#k = affine_map<()[s0] -> (s0, 6)>
#tq = affine_map<()[s0] -> (16, s0)>
#tk = affine_map<()[s0] -> (6, s0)>
module attributes {graph.symbols = [#graph.symbol<"n", 1 to 64 by 1>]} {
func.func @projections(%x: tensor<?x8xf32, #n>)
    -> (tensor<16x?xbf16, #tq>, tensor<6x?xbf16, #tk>) {
  %v = graph.weight "v" : tensor<8x16xf32>
  %0 = graph.matmul %x, %v
    : (tensor<?x8xf32, #n>, tensor<8x16xf32>) -> tensor<?x16xf32, #q>
  %a = graph.weight "a" : tensor<16xf32>
  %1 = graph.broadcast %a : (tensor<16xf32>) -> tensor<?x16xf32, #q>
  %2 = graph.add %0, %1
    : (tensor<?x16xf32, #q>, tensor<?x16xf32, #q>) -> tensor<?x16xf32, #q>
  %3 = graph.cast %2 : (tensor<?x16xf32, #q>) -> tensor<?x16xbf16, #q>
  %4 = graph.transpose %3 [1, 0]
    : (tensor<?x16xbf16, #q>) -> tensor<16x?xbf16, #tq>
  %w = graph.weight "w" : tensor<8x6xf32>
  %5 = graph.matmul %x, %w
    : (tensor<?x8xf32, #n>, tensor<8x6xf32>) -> tensor<?x6xf32, #k>
  %b = graph.weight "b" : tensor<6xf32>
  %6 = graph.broadcast %b : (tensor<6xf32>) -> tensor<?x6xf32, #k>
  %7 = graph.add %5, %6
    : (tensor<?x6xf32, #k>, tensor<?x6xf32, #k>) -> tensor<?x6xf32, #k>
  %8 = graph.cast %7 : (tensor<?x6xf32, #k>) -> tensor<?x6xbf16, #k>
  %9 = graph.transpose %8 [1, 0]
    : (tensor<?x6xbf16, #k>) -> tensor<6x?xbf16, #tk>
  return %4, %9 : tensor<16x?xbf16, #tq>, tensor<6x?xbf16, #tk>
}
}

// -----

// Parameters on the left are rows, transposed ones too.
// CHECK-LABEL: func @rows
// CHECK:         graph.concat {{.*}} {axis = 1 : i64} {{.*}} -> tensor<8x10xf32>
// CHECK:         graph.matmul {{.*}} {transpose_lhs} {{.*}} -> tensor<10x5xf32>
// CHECK-COUNT-2: graph.slice {{.*}} -> tensor<{{[46]}}x5xf32>
// CHECK-NOT:     = graph.matmul
func.func @rows(%x: tensor<8x5xf32>) -> (tensor<5x4xf32>, tensor<5x6xf32>) {
  %v = graph.weight "v" : tensor<8x4xf32>
  %w = graph.weight "w" : tensor<8x6xf32>
  %0 = graph.matmul %v, %x {transpose_lhs}
    : (tensor<8x4xf32>, tensor<8x5xf32>) -> tensor<4x5xf32>
  %1 = graph.matmul %w, %x {transpose_lhs}
    : (tensor<8x6xf32>, tensor<8x5xf32>) -> tensor<6x5xf32>
  %2 = graph.transpose %0 [1, 0] : (tensor<4x5xf32>) -> tensor<5x4xf32>
  %3 = graph.transpose %1 [1, 0] : (tensor<6x5xf32>) -> tensor<5x6xf32>
  return %2, %3 : tensor<5x4xf32>, tensor<5x6xf32>
}
