// RUN: tcc-opt %s --tcc-set-target=name=cuda --tcc-mix-precision --tcc-simplify | FileCheck %s
// RUN: tcc-opt %s --tcc-mix-precision --tcc-simplify | FileCheck %s --check-prefix=HOST

// Matrices of attention and of its gradients are narrow on a device, where tensor
// cores take them. The mask stays wide, and what is exponentiated: normalizers are
// stored so. A host has gradients of wide matrices.
// CHECK-LABEL: func @matrices
// CHECK-SAME:    %[[X:.+]]: tensor<2x8x64xf32>, %[[M:.+]]: tensor<1x8x8xf32>
// CHECK:       %[[N:.+]] = graph.cast %[[X]] : {{.*}} -> tensor<2x8x64xbf16>
// CHECK:       graph.attention_normalizer %[[N]], %[[N]] mask %[[M]] {{.*}} -> tensor<2x8x1xf32>
// CHECK-NOT:   graph.cast
// CHECK:       graph.attention_gradient <key> %[[N]], %[[N]], %[[N]], %[[N]], %{{.+}}, %{{.+}} mask %[[M]]
// CHECK-SAME:    -> tensor<2x8x64xf32>
// HOST-LABEL:  func @matrices
// HOST-NOT:    bf16
// HOST:        return
func.func @matrices(%x: tensor<2x8x64xf32>, %m: tensor<1x8x8xf32>)
    -> tensor<2x8x64xf32> {
  %n = graph.attention_normalizer %x, %x mask %m {scale = 1.0 : f64}
    : (tensor<2x8x64xf32>, tensor<2x8x64xf32>, tensor<1x8x8xf32>)
    -> tensor<2x8x1xf32>
  %d = graph.attention_gradient <key> %x, %x, %x, %x, %n, %n mask %m
    {scale = 1.0 : f64}
    : (tensor<2x8x64xf32>, tensor<2x8x64xf32>, tensor<2x8x64xf32>,
       tensor<2x8x64xf32>, tensor<2x8x1xf32>, tensor<2x8x1xf32>,
       tensor<1x8x8xf32>) -> tensor<2x8x64xf32>
  return %d : tensor<2x8x64xf32>
}

// A row is too long for registers.
// CHECK-LABEL: func @long_rows
// CHECK-NOT:   bf16
// CHECK:       return
func.func @long_rows(%x: tensor<2x16x256xf32>) -> tensor<2x16x256xf32> {
  %y = graph.attention %x, %x, %x {scale = 1.0 : f64}
    : (tensor<2x16x256xf32>, tensor<2x16x256xf32>, tensor<2x16x256xf32>)
    -> tensor<2x16x256xf32>
  return %y : tensor<2x16x256xf32>
}

// A host has attention of narrow matrices, too.
// CHECK-LABEL: func @attention
// CHECK:       graph.attention {{.*}}bf16
// HOST-LABEL:  func @attention
// HOST:        graph.attention {{.*}}bf16
func.func @attention(%x: tensor<2x16x64xf32>) -> tensor<2x16x64xf32> {
  %y = graph.attention %x, %x, %x {scale = 1.0 : f64}
    : (tensor<2x16x64xf32>, tensor<2x16x64xf32>, tensor<2x16x64xf32>)
    -> tensor<2x16x64xf32>
  return %y : tensor<2x16x64xf32>
}
