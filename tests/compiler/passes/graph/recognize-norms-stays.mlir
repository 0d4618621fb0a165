// RUN: tcc-opt %s --tcc-simplify --tcc-recognize-norms --canonicalize \
// RUN:   | FileCheck %s

// A sum is no mean.
// CHECK-LABEL: func @l2_norm_stays
// CHECK-NOT:     graph.rms_norm
// CHECK:         graph.div
func.func @l2_norm_stays(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %e = graph.constant dense<1.0e-6> : tensor<2xf32>
  %q = graph.mul %x, %x : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  %v0 = graph.reduce <sum> %q [1] : (tensor<2x8xf32>) -> tensor<2xf32>
  %v1 = graph.add %v0, %e : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %r0 = graph.sqrt %v1 : (tensor<2xf32>) -> tensor<2xf32>
  %r1 = graph.reshape %r0 : (tensor<2xf32>) -> tensor<2x1xf32>
  %r2 = graph.broadcast %r1 : (tensor<2x1xf32>) -> tensor<2x8xf32>
  %y = graph.div %x, %r2 : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

// An epsilon outside of the root is another function.
// CHECK-LABEL: func @epsilon_outside_stays
// CHECK-NOT:     graph.{{(rms|layer)}}_norm
// CHECK:         return
func.func @epsilon_outside_stays(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %xq = graph.mul %x, %x : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  %xs = graph.reduce <sum> %xq [1] : (tensor<2x8xf32>) -> tensor<2xf32>
  %xr = graph.reshape %xs : (tensor<2xf32>) -> tensor<2x1xf32>
  %xc = graph.constant dense<8.0> : tensor<2x1xf32>
  %xm = graph.div %xr, %xc : (tensor<2x1xf32>, tensor<2x1xf32>) -> tensor<2x1xf32>
  %e = graph.constant dense<1.0e-5> : tensor<2x1xf32>
  %o = graph.sqrt %xm : (tensor<2x1xf32>) -> tensor<2x1xf32>
  %a = graph.add %o, %e : (tensor<2x1xf32>, tensor<2x1xf32>) -> tensor<2x1xf32>
  %b = graph.broadcast %a : (tensor<2x1xf32>) -> tensor<2x8xf32>
  %y = graph.div %x, %b : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

// So is a variance over one element less.
// CHECK-LABEL: func @unbiased_stays
// CHECK-NOT:     graph.{{(rms|layer)}}_norm
// CHECK:         return
func.func @unbiased_stays(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %xq = graph.mul %x, %x : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  %xs = graph.reduce <sum> %xq [1] : (tensor<2x8xf32>) -> tensor<2xf32>
  %xr = graph.reshape %xs : (tensor<2xf32>) -> tensor<2x1xf32>
  %xc = graph.constant dense<7.0> : tensor<2x1xf32>
  %xm = graph.div %xr, %xc : (tensor<2x1xf32>, tensor<2x1xf32>) -> tensor<2x1xf32>
  %e = graph.constant dense<1.0e-5> : tensor<2x1xf32>
  %a = graph.add %xm, %e : (tensor<2x1xf32>, tensor<2x1xf32>) -> tensor<2x1xf32>
  %o = graph.sqrt %a : (tensor<2x1xf32>) -> tensor<2x1xf32>
  %b = graph.broadcast %o : (tensor<2x1xf32>) -> tensor<2x8xf32>
  %y = graph.div %x, %b : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

// And what divides another value than it is computed from.
// CHECK-LABEL: func @other_numerator_stays
// CHECK-NOT:     graph.{{(rms|layer)}}_norm
// CHECK:         return
func.func @other_numerator_stays(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %n = graph.neg %x : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %xq = graph.mul %x, %x : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  %xs = graph.reduce <sum> %xq [1] : (tensor<2x8xf32>) -> tensor<2xf32>
  %xr = graph.reshape %xs : (tensor<2xf32>) -> tensor<2x1xf32>
  %xc = graph.constant dense<8.0> : tensor<2x1xf32>
  %xm = graph.div %xr, %xc : (tensor<2x1xf32>, tensor<2x1xf32>) -> tensor<2x1xf32>
  %e = graph.constant dense<1.0e-5> : tensor<2x1xf32>
  %a = graph.add %xm, %e : (tensor<2x1xf32>, tensor<2x1xf32>) -> tensor<2x1xf32>
  %o = graph.sqrt %a : (tensor<2x1xf32>) -> tensor<2x1xf32>
  %b = graph.broadcast %o : (tensor<2x1xf32>) -> tensor<2x8xf32>
  %y = graph.div %n, %b : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

// Over the first axis it is no norm of rows.
// CHECK-LABEL: func @first_axis_stays
// CHECK-NOT:     graph.{{(rms|layer)}}_norm
// CHECK:         return
func.func @first_axis_stays(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %q = graph.mul %x, %x : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %s = graph.reduce <sum> %q [0] : (tensor<8x8xf32>) -> tensor<8xf32>
  %c = graph.constant dense<8.0> : tensor<8xf32>
  %e = graph.constant dense<1.0e-5> : tensor<8xf32>
  %m = graph.div %s, %c : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %a = graph.add %m, %e : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %o = graph.sqrt %a : (tensor<8xf32>) -> tensor<8xf32>
  %b = graph.broadcast %o : (tensor<8xf32>) -> tensor<8x8xf32>
  %y = graph.div %x, %b : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

// The rows' means are spread over the columns here, though the extents agree.
// CHECK-LABEL: func @spread_otherwise_stays
// CHECK-NOT:     graph.{{(rms|layer)}}_norm
// CHECK:         return
func.func @spread_otherwise_stays(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %q = graph.mul %x, %x : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %s = graph.reduce <sum> %q [1] : (tensor<8x8xf32>) -> tensor<8xf32>
  %c = graph.constant dense<8.0> : tensor<8xf32>
  %e = graph.constant dense<1.0e-5> : tensor<8xf32>
  %m = graph.div %s, %c : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %a = graph.add %m, %e : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %o = graph.sqrt %a : (tensor<8xf32>) -> tensor<8xf32>
  %b = graph.broadcast %o : (tensor<8xf32>) -> tensor<8x8xf32>
  %y = graph.div %x, %b : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

// A scale of the rows is none of the norm's.
// CHECK-LABEL: func @row_scale_stays
// CHECK:         graph.rms_norm %{{[a-z0-9]+}} {axis
// CHECK:         graph.mul
func.func @row_scale_stays(%x: tensor<8x8xf32>, %w: tensor<8x1xf32>) -> tensor<8x8xf32> {
  %n = graph.rms_norm %x {axis = 1 : i64, epsilon = 1.0e-5 : f64}
    : tensor<8x8xf32> -> tensor<8x8xf32>
  %b = graph.broadcast %w : (tensor<8x1xf32>) -> tensor<8x8xf32>
  %y = graph.mul %n, %b : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}
