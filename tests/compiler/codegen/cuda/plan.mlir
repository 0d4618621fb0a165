// RUN: tcc-opt %s --tcc-set-target=name=cuda --tcc-lower-kernels --canonicalize --cse | FileCheck %s
// RUN: sed 's/64, 64, 16, 4, 4, 1/64, 64, 16, 4, 2, 1/' %s | not tcc-opt --tcc-set-target=name=cuda \
// RUN:   --tcc-lower-kernels 2>&1 | FileCheck %s --check-prefix=TILE

// A choice in a plan that is not the default's changes the code: 16 parts of each
// sum, steps of 64 along k, instead of whole sums of tiles of 64 x 64.
// CHECK-LABEL: gpu.func @chosen(
// CHECK:         %[[STEP:.+]] = arith.constant 64 : index
// CHECK:         scf.for {{.*}} step %[[STEP]]
// CHECK-LABEL: gpu.func @default(
// CHECK:         %[[STEP:.+]] = arith.constant 16 : index
// CHECK:         scf.for {{.*}} step %[[STEP]]

// TILE: has no such tile: array<i64: 64, 64, 16, 4, 2, 1>

func.func @chosen(%x: tensor<512x256xf32>, %w: tensor<256x512xf32>)
    -> tensor<512x512xf32> {
  %y = graph.fused <contraction> (%x, %w)
      {plan = {tile = array<i64: 8, 32, 64, 4, 4, 16>}}
      : (tensor<512x256xf32>, tensor<256x512xf32>) -> tensor<512x512xf32> {
  ^bb0(%a: tensor<512x256xf32>, %b: tensor<256x512xf32>):
    %c = graph.matmul %a, %b
        : (tensor<512x256xf32>, tensor<256x512xf32>) -> tensor<512x512xf32>
    graph.yield %c : tensor<512x512xf32>
  }
  return %y : tensor<512x512xf32>
}

func.func @default(%x: tensor<512x256xf32>, %w: tensor<256x512xf32>)
    -> tensor<512x512xf32> {
  %y = graph.fused <contraction> (%x, %w)
      {plan = {tile = array<i64: 64, 64, 16, 4, 4, 1>}}
      : (tensor<512x256xf32>, tensor<256x512xf32>) -> tensor<512x512xf32> {
  ^bb0(%a: tensor<512x256xf32>, %b: tensor<256x512xf32>):
    %c = graph.matmul %a, %b
        : (tensor<512x256xf32>, tensor<256x512xf32>) -> tensor<512x512xf32>
    graph.yield %c : tensor<512x512xf32>
  }
  return %y : tensor<512x512xf32>
}
