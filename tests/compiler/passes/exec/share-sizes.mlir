// RUN: tcc-opt %s --tcc-lower-to-exec --tcc-generalize-sizes --tcc-merge-kernels --tcc-select-kernels \
// RUN:   --split-input-file | FileCheck %s
// RUN: tcc-opt %s --tcc-set-target=name=null --tcc-lower-to-exec --tcc-generalize-sizes \
// RUN:   --split-input-file | FileCheck %s --check-prefix=NULL

// A target that does not say that it computes them as fast.
// NULL-NOT: attributes {symbols
// NULL-NOT: bindings

// Kernels of one text but for their sizes are one, from wherever they are launched. 40 is
// in all, so it stays; 64, 96 and 160 are 32 times a symbol.
// CHECK-DAG:   #[[WIDE:.+]] = affine_map<()[s0] -> (40, s0 * 32)>
// CHECK-DAG:   #[[TWO:.+]] = affine_map<() -> (2)>
// CHECK-DAG:   #[[THREE:.+]] = affine_map<() -> (3)>
// CHECK-DAG:   #[[FIVE:.+]] = affine_map<() -> (5)>
// CHECK:       exec.kernel @[[K:k0[a-z_0-9]*]] attributes {symbols = [#graph.symbol<"size0", 1 to 8 by 1>]} {
// CHECK:         graph.add {{.*}} -> tensor<40x?xf32, #[[WIDE]]>
// CHECK-NOT:   exec.kernel
// CHECK:       exec.launch @[[K]] {{.*}} sizes #[[TWO]] {{.*}}bindings = #[[TWO]]
// CHECK:       exec.launch @[[K]] {{.*}} sizes #[[THREE]] {{.*}}bindings = #[[THREE]]
// CHECK:       exec.launch @[[K]] {{.*}} sizes #[[FIVE]] {{.*}}bindings = #[[FIVE]]
func.func @main(%x: tensor<40x64xf32>, %v: tensor<64xf32>, %y: tensor<40x96xf32>, %w: tensor<96xf32>)
    -> (tensor<40x64xf32>, tensor<40x96xf32>) {
  %0 = graph.fused <pointwise> (%x, %v) : (tensor<40x64xf32>, tensor<64xf32>) -> tensor<40x64xf32> {
  ^bb0(%a: tensor<40x64xf32>, %b: tensor<64xf32>):
    %c = graph.broadcast %b : (tensor<64xf32>) -> tensor<40x64xf32>
    %d = graph.add %a, %c : (tensor<40x64xf32>, tensor<40x64xf32>) -> tensor<40x64xf32>
    graph.yield %d : tensor<40x64xf32>
  }
  %1 = graph.fused <pointwise> (%y, %w) : (tensor<40x96xf32>, tensor<96xf32>) -> tensor<40x96xf32> {
  ^bb0(%a: tensor<40x96xf32>, %b: tensor<96xf32>):
    %c = graph.broadcast %b : (tensor<96xf32>) -> tensor<40x96xf32>
    %d = graph.add %a, %c : (tensor<40x96xf32>, tensor<40x96xf32>) -> tensor<40x96xf32>
    graph.yield %d : tensor<40x96xf32>
  }
  return %0, %1 : tensor<40x64xf32>, tensor<40x96xf32>
}
func.func @other(%x: tensor<40x160xf32>, %v: tensor<160xf32>) -> tensor<40x160xf32> {
  %0 = graph.fused <pointwise> (%x, %v) : (tensor<40x160xf32>, tensor<160xf32>) -> tensor<40x160xf32> {
  ^bb0(%a: tensor<40x160xf32>, %b: tensor<160xf32>):
    %c = graph.broadcast %b : (tensor<160xf32>) -> tensor<40x160xf32>
    %d = graph.add %a, %c : (tensor<40x160xf32>, tensor<40x160xf32>) -> tensor<40x160xf32>
    graph.yield %d : tensor<40x160xf32>
  }
  return %0 : tensor<40x160xf32>
}

// -----

// Rows too. Sizes that go their own ways are symbols of their own.
// CHECK-DAG:   #[[BOTH:.+]] = affine_map<()[s0, s1] -> (s0 * 30, s1 * 32)>
// CHECK-DAG:   #[[FIRST:.+]] = affine_map<() -> (3, 3)>
// CHECK-DAG:   #[[SECOND:.+]] = affine_map<() -> (4, 5)>
// CHECK:       exec.kernel @[[K:k0[a-z_0-9]*]] attributes {symbols = [#graph.symbol<"size0", 1 to 4 by 1>, #graph.symbol<"size1", 1 to 8 by 1>]} {
// CHECK:         graph.reduce <sum> {{.*}} (tensor<?x?xf32, #[[BOTH]]>)
// CHECK-NOT:   exec.kernel
// CHECK:       exec.launch @[[K]] {{.*}} sizes #[[FIRST]] {{.*}}bindings = #[[FIRST]]
// CHECK:       exec.launch @[[K]] {{.*}} sizes #[[SECOND]] {{.*}}bindings = #[[SECOND]]
func.func @main(%x: tensor<90x96xf32>, %y: tensor<120x160xf32>) -> (tensor<90xf32>, tensor<120xf32>) {
  %0 = graph.fused <row> (%x) : (tensor<90x96xf32>) -> tensor<90xf32> {
  ^bb0(%a: tensor<90x96xf32>):
    %c = graph.reduce <sum> %a [1] : (tensor<90x96xf32>) -> tensor<90xf32>
    graph.yield %c : tensor<90xf32>
  }
  %1 = graph.fused <row> (%y) : (tensor<120x160xf32>) -> tensor<120xf32> {
  ^bb0(%a: tensor<120x160xf32>):
    %c = graph.reduce <sum> %a [1] : (tensor<120x160xf32>) -> tensor<120xf32>
    graph.yield %c : tensor<120xf32>
  }
  return %0, %1 : tensor<90xf32>, tensor<120xf32>
}
