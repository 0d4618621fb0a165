// RUN: tcc-opt %s --tcc-merge-attention | FileCheck %s

// Masks of indices, or constants, that hide from a query what comes behind it.
// CHECK-LABEL: func @causal
// CHECK-COUNT-2: graph.attention {{.*}} {causal, scale
!m = tensor<2x3x8xbf16>
func.func @causal(%q: !m) -> (tensor<2x3x8xf32>, tensor<2x3x8xf32>) {
  %rows = graph.iota {axis = 0} : () -> tensor<3x1xi64>
  %columns = graph.iota {axis = 1} : () -> tensor<1x3xi64>
  %r = graph.broadcast %rows : (tensor<3x1xi64>) -> tensor<3x3xi64>
  %c = graph.broadcast %columns : (tensor<1x3xi64>) -> tensor<3x3xi64>
  %visible = graph.compare <le> %c, %r : (tensor<3x3xi64>, tensor<3x3xi64>) -> tensor<3x3xi1>
  %zero = graph.constant dense<0.0> : tensor<3x3xf32>
  %none = graph.constant dense<0xFF800000> : tensor<3x3xf32>
  %s = graph.select %visible, %zero, %none
    : (tensor<3x3xi1>, tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  %t = graph.reshape %s : (tensor<3x3xf32>) -> tensor<1x3x3xf32>
  %m = graph.broadcast %t : (tensor<1x3x3xf32>) -> tensor<2x3x3xf32>
  %0 = graph.attention %q, %q, %q mask %m {scale = 1.0 : f64}
    : (!m, !m, !m, tensor<2x3x3xf32>) -> tensor<2x3x8xf32>
  %f = graph.constant dense<[[[0.0, 0xFF800000, 0xFF800000], [0.0, 0.0, 0xFF800000],
    [0.0, 0.0, 0.0]]]> : tensor<1x3x3xf32>
  %1 = graph.attention %q, %q, %q mask %f {scale = 1.0 : f64}
    : (!m, !m, !m, tensor<1x3x3xf32>) -> tensor<2x3x8xf32>
  return %0, %1 : tensor<2x3x8xf32>, tensor<2x3x8xf32>
}

// Strictly before, the other way round, and a bias of another element.
// CHECK-LABEL: func @other
// CHECK-NOT:     causal
// CHECK:         return
func.func @other(%q: !m) -> (tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3x8xf32>) {
  %rows = graph.iota {axis = 0} : () -> tensor<3x3xi64>
  %columns = graph.iota {axis = 1} : () -> tensor<3x3xi64>
  %zero = graph.constant dense<0.0> : tensor<3x3xf32>
  %none = graph.constant dense<0xFF800000> : tensor<3x3xf32>
  %before = graph.compare <lt> %columns, %rows : (tensor<3x3xi64>, tensor<3x3xi64>) -> tensor<3x3xi1>
  %s = graph.select %before, %zero, %none
    : (tensor<3x3xi1>, tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  %l = graph.reshape %s : (tensor<3x3xf32>) -> tensor<1x3x3xf32>
  %behind = graph.compare <le> %rows, %columns : (tensor<3x3xi64>, tensor<3x3xi64>) -> tensor<3x3xi1>
  %t = graph.select %behind, %zero, %none
    : (tensor<3x3xi1>, tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  %b = graph.reshape %t : (tensor<3x3xf32>) -> tensor<1x3x3xf32>
  %f = graph.constant dense<[[[0.0, 0xFF800000, 0xFF800000], [1.0, 0.0, 0xFF800000],
    [0.0, 0.0, 0.0]]]> : tensor<1x3x3xf32>
  %0 = graph.attention %q, %q, %q mask %l {scale = 1.0 : f64}
    : (!m, !m, !m, tensor<1x3x3xf32>) -> tensor<2x3x8xf32>
  %1 = graph.attention %q, %q, %q mask %b {scale = 1.0 : f64}
    : (!m, !m, !m, tensor<1x3x3xf32>) -> tensor<2x3x8xf32>
  %2 = graph.attention %q, %q, %q mask %f {scale = 1.0 : f64}
    : (!m, !m, !m, tensor<1x3x3xf32>) -> tensor<2x3x8xf32>
  return %0, %1, %2 : tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3x8xf32>
}
