// RUN: tcc-opt %s --tcc-simplify --tcc-recognize-activations | FileCheck %s
// CHECK: decision = "recognised"{{.*}}reason = "graph.gelu"
// The exact form, factors in the order of PyTorch's exporter.
// CHECK-LABEL: func @gelu
// CHECK-SAME:    (%[[X:.+]]: tensor<4xf32>
// CHECK-NEXT:    %[[Y:.+]] = graph.gelu %[[X]]
// CHECK-NEXT:    return %[[Y]]
func.func @gelu(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = graph.constant dense<1.41421354> : tensor<4xf32>
  %o = graph.constant dense<1.0> : tensor<4xf32>
  %h = graph.constant dense<0.5> : tensor<4xf32>
  %d = graph.div %x, %r : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %e = graph.erf %d : (tensor<4xf32>) -> tensor<4xf32>
  %p = graph.add %e, %o : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %m = graph.mul %x, %p : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %y = graph.mul %m, %h : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
// x may be a product itself.
// CHECK-LABEL: func @gelu_of_product
// CHECK:         graph.gelu %
func.func @gelu_of_product(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = graph.constant dense<0.707106769> : tensor<4xf32>
  %o = graph.constant dense<1.0> : tensor<4xf32>
  %h = graph.constant dense<0.5> : tensor<4xf32>
  %s = graph.sin %x : (tensor<4xf32>) -> tensor<4xf32>
  %z = graph.mul %x, %s : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %d = graph.mul %z, %r : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %e = graph.erf %d : (tensor<4xf32>) -> tensor<4xf32>
  %p = graph.add %o, %e : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %m = graph.mul %h, %z : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %y = graph.mul %m, %p : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// The tanh form, with a cube by pow.
// CHECK-LABEL: func @gelu_tanh
// CHECK-SAME:    (%[[X:.+]]: tensor<4xf32>
// CHECK-NEXT:    %[[Y:.+]] = graph.gelu_tanh %[[X]]
// CHECK-NEXT:    return %[[Y]]
func.func @gelu_tanh(%x: tensor<4xf32>) -> tensor<4xf32> {
  %t = graph.constant dense<3.0> : tensor<4xf32>
  %c = graph.constant dense<0.044715> : tensor<4xf32>
  %k = graph.constant dense<0.797884583> : tensor<4xf32>
  %o = graph.constant dense<1.0> : tensor<4xf32>
  %h = graph.constant dense<0.5> : tensor<4xf32>
  %q = graph.pow %x, %t : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %a = graph.mul %q, %c : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %b = graph.add %x, %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %d = graph.mul %b, %k : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %e = graph.tanh %d : (tensor<4xf32>) -> tensor<4xf32>
  %p = graph.add %e, %o : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %m = graph.mul %x, %h : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %y = graph.mul %m, %p : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
// CHECK-LABEL: func @silu
// CHECK-SAME:    (%[[X:.+]]: tensor<4xf32>
// CHECK-NEXT:    %[[Y:.+]] = graph.silu %[[X]]
// CHECK-NEXT:    return %[[Y]]
func.func @silu(%x: tensor<4xf32>) -> tensor<4xf32> {
  %s = graph.sigmoid %x : (tensor<4xf32>) -> tensor<4xf32>
  %y = graph.mul %x, %s : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// A clip between the constants.
// CHECK-LABEL: func @hard_swish
// CHECK-SAME:    (%[[X:.+]]: tensor<4xf32>
// CHECK-NEXT:    %[[Y:.+]] = graph.hard_swish %[[X]]
// CHECK-NEXT:    return %[[Y]]
func.func @hard_swish(%x: tensor<4xf32>) -> tensor<4xf32> {
  %t = graph.constant dense<3.0> : tensor<4xf32>
  %z = graph.constant dense<0.0> : tensor<4xf32>
  %s = graph.constant dense<6.0> : tensor<4xf32>
  %a = graph.add %x, %t : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %b = graph.max %a, %z : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %c = graph.min %b, %s : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %m = graph.mul %x, %c : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %y = graph.div %m, %s : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
