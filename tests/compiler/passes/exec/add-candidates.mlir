// RUN: tcc-opt %s --tcc-lower-to-exec --tcc-select-kernels --tcc-add-candidates=plans=3 | FileCheck %s
// RUN: tcc-opt %s --tcc-lower-to-exec --tcc-select-kernels --tcc-add-candidates=plans=1 \
// RUN:   | FileCheck %s --check-prefix=ALONE
// RUN: tcc-opt %s --tcc-set-target=name=null --tcc-lower-to-exec --tcc-select-kernels \
// RUN:   --tcc-add-candidates | FileCheck %s --check-prefix=NULL

// The product takes nearly all of the time: it gets two more plans, each with its own
// tasks. What is added to its result is not worth it.
// CHECK-DAG:   #[[OWN:.+]] = affine_map<() -> (16)>
// CHECK-DAG:   #[[OTHERS:.+]] = affine_map<() -> (32, 8)>
// CHECK:       exec.kernel @[[K:k0[a-z_0-9]*]] attributes {candidates = [@[[A:.+_plan1]], @[[B:.+_plan2]]]}
// CHECK:         plan = {blocking = array<i64: 126, 128, 512>}
// CHECK:       exec.kernel @[[A]] {
// CHECK:         plan = {blocking = array<i64: 126, 64, 512>}
// CHECK:       exec.kernel @[[B]] {
// CHECK:         plan = {blocking = array<i64: 126, 256, 512>}
// CHECK:       exec.kernel @k1
// CHECK-NOT:     candidates
// CHECK:       exec.entry @main
// CHECK:         exec.launch @[[K]] {{.*}} tasks #[[OWN]] {{.*}}candidate_tasks = #[[OTHERS]]
// CHECK:         exec.launch @k1
// CHECK-NOT:     candidate_tasks

// ALONE-NOT: candidate

// A target that has one plan of each kernel.
// NULL-NOT: candidate
func.func @main(%x: tensor<500x512xf32>, %w: tensor<512x512xf32>, %y: tensor<8xf32>)
    -> (tensor<500x512xf32>, tensor<8xf32>) {
  %0 = graph.fused <contraction> (%x, %w)
      : (tensor<500x512xf32>, tensor<512x512xf32>) -> tensor<500x512xf32> {
  ^bb0(%a: tensor<500x512xf32>, %b: tensor<512x512xf32>):
    %c = graph.matmul %a, %b
        : (tensor<500x512xf32>, tensor<512x512xf32>) -> tensor<500x512xf32>
    graph.yield %c : tensor<500x512xf32>
  }
  %1 = graph.fused <pointwise> (%y) : (tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%a: tensor<8xf32>):
    %b = graph.exp %a : (tensor<8xf32>) -> tensor<8xf32>
    graph.yield %b : tensor<8xf32>
  }
  return %0, %1 : tensor<500x512xf32>, tensor<8xf32>
}
