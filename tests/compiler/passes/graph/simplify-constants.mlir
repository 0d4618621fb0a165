// RUN: tcc-opt %s --tcc-simplify | FileCheck %s

// Ops on constants are evaluated.
// CHECK-LABEL: func @shape_arithmetic
// CHECK-NEXT:    %[[C:.+]] = graph.constant dense<[2, 12]> : tensor<2xi64>
// CHECK-NEXT:    return %[[C]]
func.func @shape_arithmetic() -> tensor<2xi64> {
  %s = graph.constant dense<[2, 3, 4]> : tensor<3xi64>
  %i = graph.constant dense<0> : tensor<1xi64>
  %a = graph.gather %s, %i {axis = 0}
    : (tensor<3xi64>, tensor<1xi64>) -> tensor<1xi64>
  %t = graph.slice %s {starts = affine_map<() -> (1)>, steps = array<i64: 1>}
    : (tensor<3xi64>) -> tensor<2xi64>
  %p = graph.reduce <prod> %t [0] : (tensor<2xi64>) -> tensor<i64>
  %r = graph.reshape %p : (tensor<i64>) -> tensor<1xi64>
  %c = graph.concat %a, %r {axis = 0}
    : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
  return %c : tensor<2xi64>
}

// A splat becomes a broadcast scalar, and ops on splats ops on scalars.
// CHECK-LABEL: func @splats
// CHECK-NEXT:    %[[C:.+]] = graph.constant dense<5.000000e+00> : tensor<f32>
// CHECK-NEXT:    graph.broadcast %[[C]] : (tensor<f32>) -> tensor<1024x1024xf32>
func.func @splats() -> tensor<1024x1024xf32> {
  %a = graph.constant dense<2.0> : tensor<1024x1024xf32>
  %b = graph.constant dense<3.0> : tensor<1024x1024xf32>
  %c = graph.add %a, %b
    : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  return %c : tensor<1024x1024xf32>
}

// Weights may be replaced: nothing is computed from them here.
// CHECK-LABEL: func @weights_stay
// CHECK:         graph.exp
func.func @weights_stay() -> tensor<4xf32> {
  %w = graph.weight "w" : tensor<4xf32>
  %e = graph.exp %w : (tensor<4xf32>) -> tensor<4xf32>
  return %e : tensor<4xf32>
}

// More than 64 KiB is not made a constant.
// CHECK-LABEL: func @large_results_stay
// CHECK:         graph.iota
func.func @large_results_stay() -> tensor<65536xi64> {
  %i = graph.iota {axis = 0} : () -> tensor<65536xi64>
  return %i : tensor<65536xi64>
}

// A bad constant index is left to the run, which reports it.
// CHECK-LABEL: func @bad_index_stays
// CHECK:         graph.gather
func.func @bad_index_stays(%x: tensor<3xf32>) -> tensor<1xf32> {
  %i = graph.constant dense<3> : tensor<1xi64>
  %y = graph.gather %x, %i {axis = 0}
    : (tensor<3xf32>, tensor<1xi64>) -> tensor<1xf32>
  return %y : tensor<1xf32>
}

// So is one that may not count from the end.
// CHECK-LABEL: func @negative_index_stays
// CHECK:         graph.gather
func.func @negative_index_stays(%x: tensor<3xf32>) -> tensor<1xf32> {
  %i = graph.constant dense<-1> : tensor<1xi64>
  %y = graph.gather %x, %i {axis = 0, nonnegative}
    : (tensor<3xf32>, tensor<1xi64>) -> tensor<1xf32>
  return %y : tensor<1xf32>
}

// CHECK-LABEL: func @no_elements
// CHECK-NEXT:    %[[C:.+]] = graph.constant dense<> : tensor<0xf32>
// CHECK-NEXT:    return %[[C]]
func.func @no_elements(%x: tensor<0x5xf32>) -> tensor<0xf32> {
  %y = graph.reduce <sum> %x [1] : (tensor<0x5xf32>) -> tensor<0xf32>
  return %y : tensor<0xf32>
}

// A splat of another rank beside a computed operand stays, and no rewrite
// changes the module to find that out: the pass would not come to an end.
// CHECK-LABEL: func @one_splat
// CHECK-NEXT:    %[[C:.+]] = graph.constant dense<2.000000e+00> : tensor<1x1xf32>
// CHECK-NEXT:    %[[B:.+]] = graph.broadcast %[[C]]
// CHECK-NEXT:    %[[Y:.+]] = graph.mul %[[B]], %{{.+}}
// CHECK-NEXT:    return %[[Y]]
func.func @one_splat(%x: tensor<1x4xf32>) -> tensor<1x4xf32> {
  %c = graph.constant dense<2.0> : tensor<1x1xf32>
  %b = graph.broadcast %c : (tensor<1x1xf32>) -> tensor<1x4xf32>
  %y = graph.mul %b, %x
    : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x4xf32>
  return %y : tensor<1x4xf32>
}

// An op on a constant of one element is evaluated in its own shape: moving a
// reshape to a scalar about would not come to an end.
// CHECK-LABEL: func @one_element
// CHECK-NEXT:    %[[C:.+]] = graph.constant dense<2.000000e+00> : tensor<1xf32>
// CHECK-NEXT:    %[[B:.+]] = graph.broadcast %[[C]]
// CHECK-NEXT:    %[[Y:.+]] = graph.mul %{{.+}}, %[[B]]
// CHECK-NEXT:    return %[[Y]]
func.func @one_element(%x: tensor<3xf32>) -> tensor<3xf32> {
  %c = graph.constant dense<4.0> : tensor<1xf32>
  %s = graph.sqrt %c : (tensor<1xf32>) -> tensor<1xf32>
  %b = graph.broadcast %s : (tensor<1xf32>) -> tensor<3xf32>
  %y = graph.mul %x, %b
    : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  return %y : tensor<3xf32>
}
