// RUN: tcc-opt %s --tcc-simplify --tcc-recognize-norms --canonicalize \
// RUN:   | FileCheck %s

// ReduceMean, Sub, Pow, ReduceMean, Add, Sqrt, Div, Mul, Add.
// CHECK-LABEL: func @layer_norm
// CHECK-SAME:    (%[[X:.+]]: tensor<2x3x8xf32>, %[[S:.+]]: tensor<8xf32>, %[[B:.+]]: tensor<8xf32>
// CHECK-NEXT:    %[[Y:.+]] = graph.layer_norm %[[X]] scale %[[S]] : tensor<8xf32> shift %[[B]] {{.*}}axis = 2 : i64, epsilon = {{(9.99.*E-6|1.0.*E-5)}}
// CHECK-NEXT:    return %[[Y]]
func.func @layer_norm(%x: tensor<2x3x8xf32>, %s: tensor<8xf32>,
    %b: tensor<8xf32>) -> tensor<2x3x8xf32> {
  %n = graph.constant dense<8.0> : tensor<2x3x1xf32>
  %t = graph.constant dense<2.0> : tensor<2x3x8xf32>
  %e = graph.constant dense<1.0e-5> : tensor<2x3x1xf32>
  %m0 = graph.reduce <sum> %x [2] : (tensor<2x3x8xf32>) -> tensor<2x3xf32>
  %m1 = graph.reshape %m0 : (tensor<2x3xf32>) -> tensor<2x3x1xf32>
  %m2 = graph.div %m1, %n
    : (tensor<2x3x1xf32>, tensor<2x3x1xf32>) -> tensor<2x3x1xf32>
  %m3 = graph.broadcast %m2 : (tensor<2x3x1xf32>) -> tensor<2x3x8xf32>
  %c = graph.sub %x, %m3
    : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  %q = graph.pow %c, %t
    : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  %v0 = graph.reduce <sum> %q [2] : (tensor<2x3x8xf32>) -> tensor<2x3xf32>
  %v1 = graph.reshape %v0 : (tensor<2x3xf32>) -> tensor<2x3x1xf32>
  %v2 = graph.div %v1, %n
    : (tensor<2x3x1xf32>, tensor<2x3x1xf32>) -> tensor<2x3x1xf32>
  %v3 = graph.add %v2, %e
    : (tensor<2x3x1xf32>, tensor<2x3x1xf32>) -> tensor<2x3x1xf32>
  %r0 = graph.sqrt %v3 : (tensor<2x3x1xf32>) -> tensor<2x3x1xf32>
  %r1 = graph.broadcast %r0 : (tensor<2x3x1xf32>) -> tensor<2x3x8xf32>
  %d = graph.div %c, %r1
    : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  %s0 = graph.broadcast %s : (tensor<8xf32>) -> tensor<2x3x8xf32>
  %y0 = graph.mul %d, %s0
    : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  %b0 = graph.broadcast %b : (tensor<8xf32>) -> tensor<2x3x8xf32>
  %y = graph.add %y0, %b0
    : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  return %y : tensor<2x3x8xf32>
}

// CHECK-LABEL: func @rms_norm
// CHECK-SAME:    (%[[X:.+]]: tensor<2x8xf32>, %[[S:.+]]: tensor<8xf32>
// CHECK-NEXT:    graph.rms_norm %[[X]] scale %[[S]]
func.func @rms_norm(%x: tensor<2x8xf32>, %s: tensor<8xf32>) -> tensor<2x8xf32> {
  %n = graph.constant dense<8.0> : tensor<2xf32>
  %e = graph.constant dense<1.0e-6> : tensor<2xf32>
  %q = graph.mul %x, %x : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  %v0 = graph.reduce <sum> %q [1] : (tensor<2x8xf32>) -> tensor<2xf32>
  %v1 = graph.div %v0, %n : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %v2 = graph.add %v1, %e : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %r0 = graph.sqrt %v2 : (tensor<2xf32>) -> tensor<2xf32>
  %r1 = graph.reciprocal %r0 : (tensor<2xf32>) -> tensor<2xf32>
  %r2 = graph.reshape %r1 : (tensor<2xf32>) -> tensor<2x1xf32>
  %r3 = graph.broadcast %r2 : (tensor<2x1xf32>) -> tensor<2x8xf32>
  %d = graph.mul %x, %r3 : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  %s0 = graph.broadcast %s : (tensor<8xf32>) -> tensor<2x8xf32>
  %y = graph.mul %s0, %d : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

// As PyTorch writes a group norm: the channels of a group and the space are one
// axis, and there is a scale along it.
// CHECK-LABEL: func @merged_axes
// CHECK-NEXT:    %[[X:.+]] = graph.reshape %{{.+}} -> tensor<2x2x4x25xf32>
// CHECK-NEXT:    %[[S:.+]] = graph.reshape %{{.+}} : (tensor<100xf32>) -> tensor<4x25xf32>
// CHECK-NEXT:    %[[N:.+]] = graph.layer_norm %[[X]] scale %[[S]] : tensor<4x25xf32> {axis = 2 : i64
// CHECK-NEXT:    %[[Y:.+]] = graph.reshape %[[N]] {{.*}} -> tensor<2x2x100xf32>
// CHECK-NEXT:    return %[[Y]]
func.func @merged_axes(%x: tensor<2x8x25xf32>, %s: tensor<100xf32>) -> tensor<2x2x100xf32> {
  %g = graph.reshape %x : (tensor<2x8x25xf32>) -> tensor<2x2x100xf32>
  %n = graph.layer_norm %g {axis = 2 : i64, epsilon = 1.0e-5 : f64}
    : tensor<2x2x100xf32> -> tensor<2x2x100xf32>
  %b = graph.broadcast %s : (tensor<100xf32>) -> tensor<2x2x100xf32>
  %y = graph.mul %n, %b : (tensor<2x2x100xf32>, tensor<2x2x100xf32>) -> tensor<2x2x100xf32>
  return %y : tensor<2x2x100xf32>
}
