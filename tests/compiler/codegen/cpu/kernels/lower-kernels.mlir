// RUN: tcc-opt %s --tcc-lower-kernels --split-input-file | FileCheck %s

// A region of one shape is one flat loop, whatever the rank.
// CHECK-LABEL: func.func @flat(
// CHECK-SAME:    !llvm.ptr {llvm.noalias}, %{{.+}}: !llvm.ptr {llvm.noalias}, %{{.+}}: i64, %{{.+}}: i64, %{{.+}}: !llvm.ptr {llvm.noalias})
// CHECK:         %[[COUNT:.+]] = arith.constant 120 : index
// CHECK:         scf.for {{.*}} to %[[COUNT]]
// CHECK-NOT:     arith.remui
// CHECK:           math.exp
// CHECK:           llvm.store
func.func @flat(%x: tensor<4x5x6xf32>) -> tensor<4x5x6xf32> {
  %y = graph.fused <pointwise> (%x) : (tensor<4x5x6xf32>) -> tensor<4x5x6xf32> {
  ^bb0(%a: tensor<4x5x6xf32>):
    %0 = graph.exp %a : (tensor<4x5x6xf32>) -> tensor<4x5x6xf32>
    graph.yield %0 : tensor<4x5x6xf32>
  }
  return %y : tensor<4x5x6xf32>
}

// -----

// What depends on the row alone is computed outside of the inner loop.
// CHECK-LABEL: func.func @row_value(
// CHECK:         scf.for
// CHECK:           math.sqrt
// CHECK:           scf.for
// CHECK-NOT:         math.sqrt
// CHECK:             arith.mulf
func.func @row_value(%x: tensor<40x50xf32>, %r: tensor<40x1xf32>) -> tensor<40x50xf32> {
  %y = graph.fused <pointwise> (%x, %r) : (tensor<40x50xf32>, tensor<40x1xf32>) -> tensor<40x50xf32> {
  ^bb0(%a: tensor<40x50xf32>, %b: tensor<40x1xf32>):
    %0 = graph.sqrt %b : (tensor<40x1xf32>) -> tensor<40x1xf32>
    %1 = graph.broadcast %0 : (tensor<40x1xf32>) -> tensor<40x50xf32>
    %2 = graph.mul %a, %1 : (tensor<40x50xf32>, tensor<40x50xf32>) -> tensor<40x50xf32>
    graph.yield %2 : tensor<40x50xf32>
  }
  return %y : tensor<40x50xf32>
}

// -----

// A tile of a transposed tensor is computed in the tensor's own order and
// transposed by shuffles; the loop over the results reads it row by row.
// CHECK-LABEL: func.func @transposed(
// CHECK:         math.exp
// CHECK:         llvm.store
// CHECK-COUNT-16: llvm.load {{.*}} -> vector<16xi32>
// CHECK-COUNT-64: vector.shuffle
// CHECK-NOT:     vector.shuffle
// CHECK-COUNT-16: llvm.store {{.*}} : vector<16xi32>
func.func @transposed(%x: tensor<32x48xf32>) -> tensor<48x32xf32> {
  %y = graph.fused <pointwise> (%x) : (tensor<32x48xf32>) -> tensor<48x32xf32> {
  ^bb0(%a: tensor<32x48xf32>):
    %0 = graph.exp %a : (tensor<32x48xf32>) -> tensor<32x48xf32>
    %1 = graph.transpose %0 [1, 0] : (tensor<32x48xf32>) -> tensor<48x32xf32>
    graph.yield %1 : tensor<48x32xf32>
  }
  return %y : tensor<48x32xf32>
}

// -----

// Of the update of a weight whose gradient has another order, only the gradient
// is transposed, in tiles of the short axis: 9 vectors of 16 become 16.
// CHECK-LABEL: func.func @updated(
// CHECK-COUNT-9: llvm.load {{.*}} -> vector<16xi32>
// CHECK-COUNT-64: vector.shuffle
// CHECK-NOT:     vector.shuffle
// CHECK-COUNT-16: llvm.store {{.*}} : vector<16xi32>
func.func @updated(%w: tensor<32x9xf32>, %d: tensor<9x32xf32>) -> tensor<32x9xf32> {
  %y = graph.fused <pointwise> (%w, %d) : (tensor<32x9xf32>, tensor<9x32xf32>) -> tensor<32x9xf32> {
  ^bb0(%a: tensor<32x9xf32>, %b: tensor<9x32xf32>):
    %0 = graph.transpose %a [1, 0] : (tensor<32x9xf32>) -> tensor<9x32xf32>
    %1 = graph.sub %0, %b : (tensor<9x32xf32>, tensor<9x32xf32>) -> tensor<9x32xf32>
    %2 = graph.transpose %1 [1, 0] : (tensor<9x32xf32>) -> tensor<32x9xf32>
    graph.yield %2 : tensor<32x9xf32>
  }
  return %y : tensor<32x9xf32>
}

// -----

// An address is advanced by one summand after the other: of a sum without common
// bits LLVM would make an `or`, and gather what is adjacent.
// CHECK-LABEL: func.func @sliced(
// CHECK:         %[[ROW:.+]] = llvm.getelementptr %{{.+}}[%{{.+}}]
// CHECK:         %[[COLUMN:.+]] = llvm.getelementptr %[[ROW]]
// CHECK:         %[[FIRST:.+]] = llvm.getelementptr %[[COLUMN]]
// CHECK:         llvm.load %[[FIRST]]
func.func @sliced(%x: tensor<8x512xf32>) -> tensor<8x128xf32> {
  %y = graph.fused <pointwise> (%x) : (tensor<8x512xf32>) -> tensor<8x128xf32> {
  ^bb0(%a: tensor<8x512xf32>):
    %0 = graph.slice %a {starts = affine_map<() -> (0, 256)>, steps = array<i64: 1, 1>}
      : (tensor<8x512xf32>) -> tensor<8x128xf32>
    %1 = graph.exp %0 : (tensor<8x128xf32>) -> tensor<8x128xf32>
    graph.yield %1 : tensor<8x128xf32>
  }
  return %y : tensor<8x128xf32>
}
