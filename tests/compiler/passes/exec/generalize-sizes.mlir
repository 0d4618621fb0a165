// RUN: tcc-opt %s --tcc-lower-to-exec --tcc-generalize-sizes --tcc-merge-kernels --tcc-select-kernels \
// RUN:   --split-input-file | FileCheck %s
// RUN: tcc-opt %s --tcc-set-target=name=null --tcc-lower-to-exec --tcc-generalize-sizes \
// RUN:   --split-input-file | FileCheck %s --check-prefix=NULL

// A target that does not say that it computes them as fast.
// NULL-NOT: attributes {symbols
// NULL-NOT: bindings

// One kernel for both shapes; each launch has its own sizes, tasks and work. The
// element that is repeated stays as it is.
// CHECK-DAG:   #[[N:.+]] = affine_map<()[s0] -> (s0)>
// CHECK-DAG:   #[[FEW:.+]] = affine_map<() -> (12)>
// CHECK-DAG:   #[[MANY:.+]] = affine_map<() -> (40000)>
// CHECK-DAG:   #[[ONE:.+]] = affine_map<() -> (1)>
// CHECK-DAG:   #[[THREE:.+]] = affine_map<() -> (3)>
// CHECK:       exec.kernel @[[K:k0[a-z_0-9]*]] attributes {symbols = [#graph.symbol<"elements", 1 to
// CHECK-NEXT:  ^bb0(%{{.*}}: tensor<?xf32, #[[N]]>, %{{.*}}: tensor<f32>):
// CHECK:         graph.broadcast {{.*}} : (tensor<f32>) -> tensor<?xf32, #[[N]]>
// CHECK:         graph.mul
// CHECK-NOT:   exec.kernel
// CHECK:       exec.launch @[[K]] {{.*}} sizes #[[FEW]] tasks #[[ONE]] {{.*}}bindings = #[[FEW]]
// CHECK:       exec.launch @[[K]] {{.*}} sizes #[[MANY]] tasks #[[THREE]] {{.*}}bindings = #[[MANY]]
// CHECK-SAME:    flops = #[[MANY]]
func.func @main(%x: tensor<3x4xf32>, %y: tensor<40000xf32>, %s: tensor<f32>)
    -> (tensor<3x4xf32>, tensor<40000xf32>) {
  %0 = graph.fused <pointwise> (%x, %s) : (tensor<3x4xf32>, tensor<f32>) -> tensor<3x4xf32> {
  ^bb0(%a: tensor<3x4xf32>, %b: tensor<f32>):
    %c = graph.broadcast %b : (tensor<f32>) -> tensor<3x4xf32>
    %d = graph.mul %a, %c : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
    graph.yield %d : tensor<3x4xf32>
  }
  %1 = graph.fused <pointwise> (%y, %s) : (tensor<40000xf32>, tensor<f32>) -> tensor<40000xf32> {
  ^bb0(%a: tensor<40000xf32>, %b: tensor<f32>):
    %c = graph.broadcast %b : (tensor<f32>) -> tensor<40000xf32>
    %d = graph.mul %a, %c : (tensor<40000xf32>, tensor<40000xf32>) -> tensor<40000xf32>
    graph.yield %d : tensor<40000xf32>
  }
  return %0, %1 : tensor<3x4xf32>, tensor<40000xf32>
}

// -----

// Elements of other places, or of no place: a vector that rows repeat, an element that
// lies along an axis of several, positions, turned axes; a symbol of the module, also as a
// value; no elements at all; one element; rows.
// CHECK-NOT: attributes {symbols
// CHECK-NOT: bindings
module attributes {graph.symbols = [#graph.symbol<"n", 1 to 4 by 1>]} {
func.func @main(%x: tensor<3x4xf32>, %v: tensor<4xf32>, %o: tensor<1x1xf32>, %e: tensor<0x4xf32>,
                %u: tensor<1xf32>, %n: tensor<?xf32, affine_map<()[s0] -> (s0)>>)
    -> (tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xi64>, tensor<4x3xf32>,
        tensor<?xf32, affine_map<()[s0] -> (s0)>>, tensor<0x4xf32>, tensor<1xf32>, tensor<3xf32>,
        tensor<3x4xf32>) {
  %0 = graph.fused <pointwise> (%x, %v) : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32> {
  ^bb0(%a: tensor<3x4xf32>, %b: tensor<4xf32>):
    %c = graph.broadcast %b : (tensor<4xf32>) -> tensor<3x4xf32>
    %d = graph.mul %a, %c : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
    graph.yield %d : tensor<3x4xf32>
  }
  %1 = graph.fused <pointwise> (%o) : (tensor<1x1xf32>) -> tensor<3x4xf32> {
  ^bb0(%a: tensor<1x1xf32>):
    %c = graph.broadcast %a : (tensor<1x1xf32>) -> tensor<3x4xf32>
    graph.yield %c : tensor<3x4xf32>
  }
  %2 = graph.fused <pointwise> () : () -> tensor<3x4xi64> {
    %c = graph.iota {axis = 0 : i64} : () -> tensor<3x4xi64>
    graph.yield %c : tensor<3x4xi64>
  }
  %3 = graph.fused <pointwise> (%x) : (tensor<3x4xf32>) -> tensor<4x3xf32> {
  ^bb0(%a: tensor<3x4xf32>):
    %c = graph.transpose %a [1, 0] : (tensor<3x4xf32>) -> tensor<4x3xf32>
    graph.yield %c : tensor<4x3xf32>
  }
  %4 = graph.fused <pointwise> (%n) : (tensor<?xf32, affine_map<()[s0] -> (s0)>>)
      -> tensor<?xf32, affine_map<()[s0] -> (s0)>> {
  ^bb0(%a: tensor<?xf32, affine_map<()[s0] -> (s0)>>):
    %c = graph.exp %a : (tensor<?xf32, affine_map<()[s0] -> (s0)>>)
      -> tensor<?xf32, affine_map<()[s0] -> (s0)>>
    graph.yield %c : tensor<?xf32, affine_map<()[s0] -> (s0)>>
  }
  %5 = graph.fused <pointwise> (%e) : (tensor<0x4xf32>) -> tensor<0x4xf32> {
  ^bb0(%a: tensor<0x4xf32>):
    %c = graph.exp %a : (tensor<0x4xf32>) -> tensor<0x4xf32>
    graph.yield %c : tensor<0x4xf32>
  }
  %6 = graph.fused <pointwise> (%u) : (tensor<1xf32>) -> tensor<1xf32> {
  ^bb0(%a: tensor<1xf32>):
    %c = graph.exp %a : (tensor<1xf32>) -> tensor<1xf32>
    graph.yield %c : tensor<1xf32>
  }
  %7 = graph.fused <row> (%x) : (tensor<3x4xf32>) -> tensor<3xf32> {
  ^bb0(%a: tensor<3x4xf32>):
    %c = graph.reduce <sum> %a [1] : (tensor<3x4xf32>) -> tensor<3xf32>
    graph.yield %c : tensor<3xf32>
  }
  %8 = graph.fused <pointwise> (%x) : (tensor<3x4xf32>) -> tensor<3x4xf32> {
  ^bb0(%a: tensor<3x4xf32>):
    %b = graph.size affine_map<()[s0] -> (s0)>
    %c = graph.cast %b : (tensor<i64>) -> tensor<f32>
    %d = graph.broadcast %c : (tensor<f32>) -> tensor<3x4xf32>
    %g = graph.mul %a, %d : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
    graph.yield %g : tensor<3x4xf32>
  }
  return %0, %1, %2, %3, %4, %5, %6, %7, %8 : tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xi64>,
    tensor<4x3xf32>, tensor<?xf32, affine_map<()[s0] -> (s0)>>, tensor<0x4xf32>, tensor<1xf32>,
    tensor<3xf32>, tensor<3x4xf32>
}
}
