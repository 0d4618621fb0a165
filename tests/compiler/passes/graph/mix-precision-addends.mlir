// RUN: tcc-opt %s --split-input-file --tcc-set-target=name=cuda --tcc-mix-precision --tcc-simplify | FileCheck %s
// What is added to products may be narrow without being a product.

// What relu passed of a sum is none that is rounded again: it is added narrow.
// CHECK-LABEL: func @passed
// CHECK:         %[[H:.+]] = graph.select
// CHECK:         %[[N:.+]] = graph.cast %[[H]] : {{.*}} -> tensor<4x8xbf16>
// CHECK:         %[[W:.+]] = graph.cast %[[N]]
// CHECK:         %[[Y:.+]] = graph.matmul
// CHECK:         %[[S:.+]] = graph.add %[[Y]], %[[W]]
// CHECK:         graph.cast %[[S]] : {{.*}} -> tensor<4x8xbf16>
func.func @passed(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>, %m: tensor<4x8xi1>)
    -> tensor<4x8xf32> {
  %0 = graph.constant dense<0.0> : tensor<f32>
  %o = graph.broadcast %0 : (tensor<f32>) -> tensor<4x8xf32>
  %t = graph.matmul %x, %w
    : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %h = graph.select %m, %o, %t
    : (tensor<4x8xi1>, tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %e = graph.exp %h : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %y = graph.matmul %e, %w
    : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %s = graph.add %y, %h : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %f = graph.exp %s : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %z = graph.matmul %f, %w
    : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  return %z : tensor<4x8xf32>
}

// -----

// Elements that are picked from something else would be rounded: they stay wide.
// CHECK-LABEL: func @other
// CHECK:         %[[H:.+]] = graph.select
// CHECK:         %[[Y:.+]] = graph.matmul
// CHECK:         %[[N:.+]] = graph.cast %[[Y]] : {{.*}} -> tensor<4x8xbf16>
// CHECK:         %[[W:.+]] = graph.cast %[[N]]
// CHECK:         graph.add %[[W]], %[[H]]
func.func @other(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>, %m: tensor<4x8xi1>)
    -> tensor<4x8xf32> {
  %0 = graph.constant dense<0.0> : tensor<f32>
  %o = graph.broadcast %0 : (tensor<f32>) -> tensor<4x8xf32>
  %t = graph.sin %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %h = graph.select %m, %o, %t
    : (tensor<4x8xi1>, tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %y = graph.matmul %x, %w
    : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %s = graph.add %y, %h : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %f = graph.exp %s : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %z = graph.matmul %f, %w
    : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  return %z : tensor<4x8xf32>
}

// -----

// A trained vector of channels is added narrow, as a library wants it; a trained
// matrix is rounded for products alone.
// CHECK-LABEL: func @trained
// CHECK-SAME:    %{{.+}}: tensor<4x8xf32>, %[[W:[^:]+]]: tensor<8x8xf32>, %[[B:[^:]+]]: tensor<8xf32> {graph.variable = "b"}, %[[P:[^:]+]]: tensor<4x8xf32>
// CHECK:         %[[N:.+]] = graph.cast %[[B]] : (tensor<8xf32>) -> tensor<8xbf16>
// CHECK:         %[[T:.+]] = graph.matmul
// CHECK:         %[[S:.+]] = graph.add %[[T]]
// CHECK:         graph.cast %[[S]] : {{.*}} -> tensor<4x8xbf16>
// CHECK:         %[[U:.+]] = graph.matmul
// CHECK:         graph.cast %[[U]] : {{.*}} -> tensor<4x8xbf16>
// CHECK:         graph.add %{{.+}}, %[[P]]
module attributes {graph.variables = [
    #graph.variable<"b", parameter, tensor<8xf32>>,
    #graph.variable<"p", parameter, tensor<4x8xf32>>]} {
  func.func @trained(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>,
                     %b: tensor<8xf32> {graph.variable = "b"},
                     %p: tensor<4x8xf32> {graph.variable = "p"})
      -> tensor<4x8xf32> {
    %t = graph.matmul %x, %w
      : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %c = graph.broadcast %b : (tensor<8xf32>) -> tensor<4x8xf32>
    %s = graph.add %t, %c : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %u = graph.matmul %s, %w
      : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %v = graph.add %u, %p : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %z = graph.matmul %v, %w
      : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    return %z : tensor<4x8xf32>
  }
}
