// RUN: tcc-opt %s --tcc-recognize-norms --split-input-file | FileCheck %s

// As exporters of group norms write it: the factor of each group on merged axes, then
// that of each channel. All of it is done on the axes themselves; what follows is moved
// by simplify.
// CHECK-LABEL: @groups
// CHECK:       %[[N:.+]] = graph.layer_norm {{.*}} -> tensor<2x8x4x3x5xf32>
// CHECK:       graph.broadcast {{.*}} : (tensor<1x8x1x1x1xf32>) -> tensor<2x8x4x3x5xf32>
// CHECK-NEXT:  %[[A:.+]] = graph.mul %[[N]]
// CHECK:       graph.broadcast {{.*}} : (tensor<1x8x4x1x1xf32>) -> tensor<2x8x4x3x5xf32>
// CHECK-NEXT:  %[[B:.+]] = graph.add %[[A]]
// CHECK-NEXT:  %[[R:.+]] = graph.reshape %[[B]] {{.*}} -> tensor<2x32x3x5xf32>
// CHECK-NEXT:  return %[[R]]
func.func @groups(%x: tensor<2x32x3x5xf32>, %a: tensor<8x1xf32>, %b: tensor<32x1x1xf32>)
    -> tensor<2x32x3x5xf32> {
  %0 = graph.reshape %x : (tensor<2x32x3x5xf32>) -> tensor<2x8x60xf32>
  %1 = graph.layer_norm %0 {axis = 2 : i64, epsilon = 1.0e-5 : f64}
    : tensor<2x8x60xf32> -> tensor<2x8x60xf32>
  %2 = graph.broadcast %a : (tensor<8x1xf32>) -> tensor<2x8x60xf32>
  %3 = graph.mul %1, %2 : (tensor<2x8x60xf32>, tensor<2x8x60xf32>) -> tensor<2x8x60xf32>
  %4 = graph.reshape %3 : (tensor<2x8x60xf32>) -> tensor<2x32x3x5xf32>
  %5 = graph.broadcast %b : (tensor<32x1x1xf32>) -> tensor<2x32x3x5xf32>
  %6 = graph.add %4, %5 : (tensor<2x32x3x5xf32>, tensor<2x32x3x5xf32>) -> tensor<2x32x3x5xf32>
  return %6 : tensor<2x32x3x5xf32>
}

// -----

// Left: a factor along a part of the merged axes; a tensor that repeats nothing; a
// reshape that is read elsewhere, too.
// CHECK-LABEL: @left
// CHECK:       graph.layer_norm {{.*}} -> tensor<2x8x4x3x5xf32>
// CHECK:       %[[M:.+]] = graph.reshape {{.*}} : (tensor<2x2x4x60xf32>) -> tensor<2x8x60xf32>
// CHECK:       graph.mul %[[M]]
// CHECK:       graph.mul %{{.*}}, %arg2
func.func @left(%x: tensor<2x32x3x5xf32>, %a: tensor<60xf32>, %y: tensor<2x8x60xf32>)
    -> (tensor<2x8x60xf32>, tensor<2x8x60xf32>, tensor<2x8x60xf32>) {
  %0 = graph.reshape %x : (tensor<2x32x3x5xf32>) -> tensor<2x8x60xf32>
  %1 = graph.layer_norm %0 {axis = 2 : i64, epsilon = 1.0e-5 : f64}
    : tensor<2x8x60xf32> -> tensor<2x8x60xf32>
  %2 = graph.reshape %1 : (tensor<2x8x60xf32>) -> tensor<2x2x4x60xf32>
  %3 = graph.reshape %2 : (tensor<2x2x4x60xf32>) -> tensor<2x8x60xf32>
  %4 = graph.broadcast %a : (tensor<60xf32>) -> tensor<2x8x60xf32>
  %5 = graph.mul %3, %4 : (tensor<2x8x60xf32>, tensor<2x8x60xf32>) -> tensor<2x8x60xf32>
  %6 = graph.mul %3, %y : (tensor<2x8x60xf32>, tensor<2x8x60xf32>) -> tensor<2x8x60xf32>
  return %3, %5, %6 : tensor<2x8x60xf32>, tensor<2x8x60xf32>, tensor<2x8x60xf32>
}
