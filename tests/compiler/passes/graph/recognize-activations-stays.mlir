// RUN: tcc-opt %s --tcc-simplify --tcc-recognize-activations | FileCheck %s

// The exponential overflows where softplus is x.
// CHECK-LABEL: func @log_of_exp_stays
// CHECK:         graph.log
// CHECK-NOT:     graph.softplus
func.func @log_of_exp_stays(%x: tensor<4xf32>) -> tensor<4xf32> {
  %o = graph.constant dense<1.0> : tensor<4xf32>
  %e = graph.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %a = graph.add %e, %o : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %y = graph.log %a : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// Another constant is another function.
// CHECK-LABEL: func @other_constant_stays
// CHECK:         graph.erf
// CHECK-NOT:     graph.gelu
func.func @other_constant_stays(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = graph.constant dense<1.5> : tensor<4xf32>
  %o = graph.constant dense<1.0> : tensor<4xf32>
  %h = graph.constant dense<0.5> : tensor<4xf32>
  %d = graph.div %x, %r : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %e = graph.erf %d : (tensor<4xf32>) -> tensor<4xf32>
  %p = graph.add %e, %o : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %m = graph.mul %x, %p : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %y = graph.mul %m, %h : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// The constant of a narrow type is as close as that type comes; one of a wide
// type is expected to be closer.
// CHECK-LABEL: func @precision
// CHECK:         graph.gelu %{{.+}} : (tensor<4xf16>)
// CHECK-NOT:     graph.gelu
func.func @precision(%x: tensor<4xf16>, %w: tensor<4xf64>)
    -> (tensor<4xf16>, tensor<4xf64>) {
  %r = graph.constant dense<0.70703125> : tensor<4xf16>
  %o = graph.constant dense<1.0> : tensor<4xf16>
  %h = graph.constant dense<0.5> : tensor<4xf16>
  %d = graph.mul %x, %r : (tensor<4xf16>, tensor<4xf16>) -> tensor<4xf16>
  %e = graph.erf %d : (tensor<4xf16>) -> tensor<4xf16>
  %p = graph.add %e, %o : (tensor<4xf16>, tensor<4xf16>) -> tensor<4xf16>
  %m = graph.mul %x, %p : (tensor<4xf16>, tensor<4xf16>) -> tensor<4xf16>
  %y = graph.mul %m, %h : (tensor<4xf16>, tensor<4xf16>) -> tensor<4xf16>
  %wr = graph.constant dense<0.7071067> : tensor<4xf64>
  %wo = graph.constant dense<1.0> : tensor<4xf64>
  %wh = graph.constant dense<0.5> : tensor<4xf64>
  %wd = graph.mul %w, %wr : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  %we = graph.erf %wd : (tensor<4xf64>) -> tensor<4xf64>
  %wp = graph.add %we, %wo : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  %wm = graph.mul %w, %wp : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  %wy = graph.mul %wm, %wh : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  return %y, %wy : tensor<4xf16>, tensor<4xf64>
}

// Integers have no activations, and a sixth of them is rounded.
// CHECK-LABEL: func @integers_stay
// CHECK-NOT:     graph.hard_sigmoid
// CHECK-NOT:     graph.hard_swish
// CHECK:         return
func.func @integers_stay(%x: tensor<4xi32>)
    -> (tensor<4xi32>, tensor<4xi32>) {
  %z = graph.constant dense<0> : tensor<4xi32>
  %o = graph.constant dense<1> : tensor<4xi32>
  %t = graph.constant dense<3> : tensor<4xi32>
  %s = graph.constant dense<6> : tensor<4xi32>
  %p = graph.add %x, %o : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %l = graph.max %p, %z : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %y = graph.min %l, %o : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %a = graph.add %x, %t : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %b = graph.max %a, %z : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %c = graph.min %b, %s : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %m = graph.mul %x, %c : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %d = graph.div %m, %s : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  return %y, %d : tensor<4xi32>, tensor<4xi32>
}

// CHECK-LABEL: func @mish_stays
// CHECK:         graph.tanh
// CHECK:         graph.mul
func.func @mish_stays(%x: tensor<4xf32>) -> tensor<4xf32> {
  %s = graph.softplus %x : (tensor<4xf32>) -> tensor<4xf32>
  %t = graph.tanh %s : (tensor<4xf32>) -> tensor<4xf32>
  %y = graph.mul %x, %t : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
