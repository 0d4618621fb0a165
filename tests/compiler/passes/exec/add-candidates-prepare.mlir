// RUN: tcc-opt %s --tcc-lower-to-exec --tcc-merge-kernels --tcc-select-kernels \
// RUN:   --tcc-add-candidates=plans=2 | tcc-opt | FileCheck %s

// A kernel that prepare launches, too, has its candidates there: each plan has its own
// tasks.
// CHECK:       exec.kernel @[[K:k0[a-z_0-9]*]] attributes {candidates = [@[[K]]_plan1]}
// CHECK:       exec.entry @main
// CHECK:         exec.launch @[[K]] {{.*}}candidate_tasks = #[[TASKS:.+]], flops
// CHECK:       exec.entry @prepare
// CHECK:         exec.launch @[[K]] {{.*}}candidate_tasks = #[[TASKS]], flops
func.func @main(%x: tensor<500x512xf32>, %w: tensor<512x512xf32>) -> tensor<500x512xf32> {
  %0 = graph.fused <contraction> (%x, %w)
      : (tensor<500x512xf32>, tensor<512x512xf32>) -> tensor<500x512xf32> {
  ^bb0(%a: tensor<500x512xf32>, %b: tensor<512x512xf32>):
    %c = graph.matmul %a, %b
        : (tensor<500x512xf32>, tensor<512x512xf32>) -> tensor<500x512xf32>
    graph.yield %c : tensor<500x512xf32>
  }
  return %0 : tensor<500x512xf32>
}
func.func @prepare(%x: tensor<500x512xf32>, %w: tensor<512x512xf32>) -> tensor<500x512xf32> {
  %0 = graph.fused <contraction> (%x, %w)
      : (tensor<500x512xf32>, tensor<512x512xf32>) -> tensor<500x512xf32> {
  ^bb0(%a: tensor<500x512xf32>, %b: tensor<512x512xf32>):
    %c = graph.matmul %a, %b
        : (tensor<500x512xf32>, tensor<512x512xf32>) -> tensor<500x512xf32>
    graph.yield %c : tensor<500x512xf32>
  }
  return %0 : tensor<500x512xf32>
}
