// RUN: sed 's/ PLAN$//' %s | tcc-opt --tcc-lower-to-exec --tcc-select-kernels | FileCheck %s
// RUN: sed 's/PLAN/{plan = {plane_rows = 96 : i64}}/' %s \
// RUN:   | tcc-opt --tcc-lower-to-exec --tcc-select-kernels | FileCheck %s --check-prefix=MORE
// RUN: sed 's/PLAN/{plan = {blocking = array<i64: 12, 64, 49>}}/' %s \
// RUN:   | tcc-opt --tcc-lower-to-exec --tcc-select-kernels | FileCheck %s --check-prefix=BLOCKS
// RUN: sed 's/PLAN/{plan = {plane_rows = 97 : i64}}/' %s \
// RUN:   | not tcc-opt --tcc-lower-to-exec --tcc-select-kernels 2>&1 \
// RUN:   | FileCheck %s --check-prefix=TOO-MANY

// Eight filters do not fill a vector: tasks copy the rows of the input for twelve rows of
// results, 18 of 96 + 7 columns, as many as whole vectors hold, and list where each of 49
// taps reads.
// CHECK-DAG: #[[TASKS:.+]] = affine_map<() -> (16)>
// CHECK:     plan = {plane_rows = 12 : i64}
// CHECK:     exec.entry @main {{.*}}worker_bytes = 8456
// CHECK:     exec.launch {{.*}} tasks #[[TASKS]]

// The plan says otherwise.
// MORE-DAG: #[[TASKS:.+]] = affine_map<() -> (2)>
// MORE:     plan = {plane_rows = 96 : i64}
// MORE:     exec.launch {{.*}} tasks #[[TASKS]]
// BLOCKS:   plan = {blocking = array<i64: 12, 64, 49>}
// TOO-MANY: cannot be computed by planes of so many rows
func.func @main(%x: tensor<2x96x96x1xf32>, %w: tensor<1x1x49x16xf32>) -> tensor<2x96x96x8xf32> {
  %y = graph.fused <contraction> (%x, %w) PLAN
      : (tensor<2x96x96x1xf32>, tensor<1x1x49x16xf32>) -> tensor<2x96x96x8xf32> {
  ^bb0(%a: tensor<2x96x96x1xf32>, %b: tensor<1x1x49x16xf32>):
    %c = graph.conv %a, %b {packed_filter, channels_last, filters = 8 : i64, groups = 1 : i64,
      window = array<i64: 7, 7>, strides = array<i64: 1, 1>, pad_low = array<i64: 3, 3>,
      pad_high = array<i64: 3, 3>, dilations = array<i64: 1, 1>}
      : (tensor<2x96x96x1xf32>, tensor<1x1x49x16xf32>) -> tensor<2x96x96x8xf32>
    graph.yield %c : tensor<2x96x96x8xf32>
  }
  return %y : tensor<2x96x96x8xf32>
}
