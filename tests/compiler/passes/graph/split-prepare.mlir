// RUN: tcc-opt %s --tcc-split-prepare --split-input-file | FileCheck %s

// What depends on weights alone is stored; a name of the model is not taken.
// A weight that is used as it is, a broadcast and a constant stay in @main.
// CHECK-LABEL: func.func @main
// CHECK-NOT:     graph.exp
// CHECK-DAG:     %[[E:.+]] = graph.weight "prepare.1" : tensor<4xf32>
// CHECK-DAG:     %[[B:.+]] = graph.weight "prepare.0" : tensor<4xf32>
// CHECK:         graph.broadcast %[[E]]
// CHECK:         graph.broadcast %[[B]]
// CHECK:         graph.constant

// CHECK-LABEL: func.func @prepare
// CHECK-SAME:    (%[[W:.+]]: tensor<4xf32> {graph.name = "w"}) -> (tensor<4xf32> {graph.name = "prepare.1"})
// CHECK-NEXT:    %[[R:.+]] = graph.exp %[[W]]
// CHECK-NEXT:    return %[[R]]
func.func @main(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %w = graph.weight "w" : tensor<4xf32>
  %b = graph.weight "prepare.0" : tensor<4xf32>
  %e = graph.exp %w : (tensor<4xf32>) -> tensor<4xf32>
  %f = graph.broadcast %e : (tensor<4xf32>) -> tensor<2x4xf32>
  %g = graph.broadcast %b : (tensor<4xf32>) -> tensor<2x4xf32>
  %y = graph.add %x, %f : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %z = graph.add %y, %g : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %c = graph.constant dense<2.0> : tensor<f32>
  %d = graph.broadcast %c : (tensor<f32>) -> tensor<2x4xf32>
  %m = graph.mul %z, %d : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  return %m : tensor<2x4xf32>
}

// -----

// A table that depends on nothing is stored if it takes much work; a mask is
// computed where it is read.
// CHECK-LABEL: func.func @main
// CHECK-NOT:     graph.cos
// CHECK:         graph.weight "prepare.0" : tensor<65536xf32>
// CHECK:         graph.compare
// CHECK-LABEL: func.func @prepare() -> (tensor<65536xf32> {graph.name = "prepare.0"})
// CHECK:         graph.iota
// CHECK:         graph.cos
// CHECK-NOT:     graph.compare
func.func @main(%x: tensor<65536xf32>, %i: tensor<65536xi64>) -> tensor<65536xf32> {
  %n = graph.iota {axis = 0} : () -> tensor<65536xi64>
  %f = graph.cast %n : (tensor<65536xi64>) -> tensor<65536xf32>
  %c = graph.cos %f : (tensor<65536xf32>) -> tensor<65536xf32>
  %m = graph.compare <lt> %n, %i : (tensor<65536xi64>, tensor<65536xi64>) -> tensor<65536xi1>
  %y = graph.select %m, %x, %c : (tensor<65536xi1>, tensor<65536xf32>, tensor<65536xf32>) -> tensor<65536xf32>
  return %y : tensor<65536xf32>
}

// -----

// Where few elements are read, by index, movement stays with the reader.
// CHECK-LABEL: func.func @main
// CHECK:         %[[W:.+]] = graph.weight "prepare.0" : tensor<8x4xf32>
// CHECK:         %[[T:.+]] = graph.transpose %[[W]]
// CHECK:         graph.gather %[[T]]
// CHECK-LABEL: func.func @prepare
// CHECK-NOT:     graph.transpose
func.func @main(%i: tensor<2xi64>) -> tensor<2x8xf32> {
  %w = graph.weight "w" : tensor<8x4xf32>
  %e = graph.exp %w : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %t = graph.transpose %e [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>
  %y = graph.gather %t, %i {axis = 0}
    : (tensor<4x8xf32>, tensor<2xi64>) -> tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

// -----

// A bias that is stored narrow is widened where it is read, not for each row.
// CHECK-LABEL: func.func @main
// CHECK:         %[[B:.+]] = graph.weight "prepare.0" : tensor<4xbf16>
// CHECK:         %[[M:.+]] = graph.reshape %[[B]]
// CHECK:         graph.broadcast %[[M]]
// CHECK:         graph.transpose
// CHECK:         graph.cast
func.func @main(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %b = graph.weight "b" : tensor<4xf32>
  %n = graph.cast %b : (tensor<4xf32>) -> tensor<4xbf16>
  %m = graph.reshape %n : (tensor<4xbf16>) -> tensor<4x1xbf16>
  %r = graph.broadcast %m : (tensor<4x1xbf16>) -> tensor<4x2xbf16>
  %t = graph.transpose %r [1, 0] : (tensor<4x2xbf16>) -> tensor<2x4xbf16>
  %w = graph.cast %t : (tensor<2x4xbf16>) -> tensor<2x4xf32>
  %y = graph.add %x, %w : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// -----

// Functions share what they compute alike; @init, which runs once, stays as it
// is.
// CHECK-LABEL: func.func @init
// CHECK:         graph.exp
// CHECK-LABEL: func.func @eval
// CHECK:         %[[E:.+]] = graph.weight "prepare.0" : tensor<4xf32>
// CHECK:         graph.add %{{.+}}, %[[E]]
// CHECK-LABEL: func.func @predict
// CHECK:         %[[P:.+]] = graph.weight "prepare.0" : tensor<4xf32>
// CHECK:         graph.mul %{{.+}}, %[[P]]
// CHECK-LABEL: func.func @prepare
// CHECK-SAME:    -> (tensor<4xf32> {graph.name = "prepare.0"})
func.func @init() -> tensor<4xf32> {
  %w = graph.weight "w" : tensor<4xf32>
  %e = graph.exp %w : (tensor<4xf32>) -> tensor<4xf32>
  return %e : tensor<4xf32>
}
func.func @eval(%x: tensor<4xf32>) -> tensor<4xf32> {
  %w = graph.weight "w" : tensor<4xf32>
  %e = graph.exp %w : (tensor<4xf32>) -> tensor<4xf32>
  %y = graph.add %x, %e : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
func.func @predict(%x: tensor<4xf32>) -> tensor<4xf32> {
  %w = graph.weight "w" : tensor<4xf32>
  %e = graph.exp %w : (tensor<4xf32>) -> tensor<4xf32>
  %y = graph.mul %x, %e : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
