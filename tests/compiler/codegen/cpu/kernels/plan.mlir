// RUN: tcc-opt %s --tcc-lower-kernels --canonicalize --cse | FileCheck %s
// RUN: sed 's/66, 192, 512/66, 100, 512/' %s | not tcc-opt --tcc-lower-kernels 2>&1 \
// RUN:   | FileCheck %s --check-prefix=COLUMNS
// RUN: sed 's/66, 192, 512/66, 192, 513/' %s | not tcc-opt --tcc-lower-kernels 2>&1 \
// RUN:   | FileCheck %s --check-prefix=DEPTH
// RUN: sed 's/66, 192, 512/66, 192, 512, 8/' %s | tcc-opt --tcc-lower-kernels \
// RUN:   --canonicalize --cse | FileCheck %s --check-prefix=UNROLLED
// RUN: sed 's/66, 192, 512/66, 192, 512, 17/' %s | not tcc-opt --tcc-lower-kernels 2>&1 \
// RUN:   | FileCheck %s --check-prefix=TOO-FAR

// The blocks of a plan that is not the default's are those of the code: 66 rows, 192
// columns, and 512 k at once, instead of blocks of 126 rows and 128 columns.
// CHECK-LABEL: func.func @chosen(
// CHECK-DAG:     arith.constant 66 : index
// CHECK-DAG:     arith.constant 192 : index
// CHECK:         return
// CHECK-LABEL: func.func @default(
// CHECK-DAG:     arith.constant 126 : index
// CHECK-DAG:     arith.constant 128 : index
// CHECK:         return

// Whole panels of 64 columns, and no more than there are.
// COLUMNS: cannot have such blocks of rows, columns and k: array<i64: 66, 100, 512>
// DEPTH: cannot have such blocks of rows, columns and k: array<i64: 66, 192, 513>
// TOO-FAR: cannot have such blocks of rows, columns and k: array<i64: 66, 192, 512, 17>

// A tile multiplies eight k in an iteration, of the loop over k, instead of four.
// UNROLLED-LABEL: func.func @chosen(
// UNROLLED-NOT:     step %c4
// UNROLLED-LABEL: func.func @default(
// UNROLLED:         scf.for {{.*}} step %c4
func.func @chosen(%x: tensor<500x512xf32>, %w: tensor<512x512xf32>)
    -> tensor<500x512xf32> {
  %y = graph.fused <contraction> (%x, %w)
      {plan = {blocking = array<i64: 66, 192, 512>}}
      : (tensor<500x512xf32>, tensor<512x512xf32>) -> tensor<500x512xf32> {
  ^bb0(%a: tensor<500x512xf32>, %b: tensor<512x512xf32>):
    %c = graph.matmul %a, %b
        : (tensor<500x512xf32>, tensor<512x512xf32>) -> tensor<500x512xf32>
    graph.yield %c : tensor<500x512xf32>
  }
  return %y : tensor<500x512xf32>
}

func.func @default(%x: tensor<500x512xf32>, %w: tensor<512x512xf32>)
    -> tensor<500x512xf32> {
  %y = graph.fused <contraction> (%x, %w)
      : (tensor<500x512xf32>, tensor<512x512xf32>) -> tensor<500x512xf32> {
  ^bb0(%a: tensor<500x512xf32>, %b: tensor<512x512xf32>):
    %c = graph.matmul %a, %b
        : (tensor<500x512xf32>, tensor<512x512xf32>) -> tensor<500x512xf32>
    graph.yield %c : tensor<500x512xf32>
  }
  return %y : tensor<500x512xf32>
}
