// RUN: tcc-opt %s --split-input-file --verify-diagnostics | FileCheck %s
// A kernel holds one computation; a constant is the model's or has a value.

// CHECK: exec.constant "fc.weight" : tensor<16x8xf32>
exec.constant "fc.weight" : tensor<16x8xf32>
// CHECK: exec.constant "one" : tensor<1xf32> dense<1.000000e+00>
exec.constant "one" : tensor<1xf32> dense<1.0> : tensor<1xf32>

// CHECK-LABEL: exec.kernel @exp
exec.kernel @exp {
^bb0(%x: tensor<4xf32>):
  %y = graph.fused <pointwise> (%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    %b = graph.exp %a : (tensor<4xf32>) -> tensor<4xf32>
    graph.yield %b : tensor<4xf32>
  }
}

// -----

// expected-error @+1 {{'exec.kernel' op}}
exec.kernel @empty {
^bb0(%x: tensor<4xf32>):
}

// -----

// CHECK-LABEL: exec.kernel @product
// CHECK-SAME:    library = #exec.library_work<product, lhs = <0 : f32,
// CHECK-SAME:    steps = [#exec.step<scale by 5.000000e-01 : f64>,
// CHECK-SAME:    #exec.step<bias of <2 : f32,
// CHECK-SAME:    #exec.step<relu>], tf32 = true>
exec.kernel @product attributes {library = #exec.library_work<product,
    lhs = <0 : f32, () -> (0, 1, 4, 6, 0, 6, 1)>,
    rhs = <1 : f32, () -> (0, 1, 6, 8, 0, 8, 1)>,
    result = <3 : f32, () -> (0, 1, 4, 8, 0, 8, 1)>,
    steps = [#exec.step<scale by 5.0e-1 : f64>,
             #exec.step<bias of <2 : f32, () -> (0, 1, 4, 8, 0, 0, 1)>>,
             #exec.step<relu>], tf32 = true>} {
^bb0(%x: tensor<4xf32>):
  %y = graph.fused <pointwise> (%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    %b = graph.exp %a : (tensor<4xf32>) -> tensor<4xf32>
    graph.yield %b : tensor<4xf32>
  }
}

// -----

// expected-error @+2 {{'softmax' is not known}}
// expected-error @+1 {{failed to parse Exec_StepAttr parameter 'kind'}}
#unknown = #exec.step<softmax>

// -----

// expected-error @+1 {{bias needs an operand}}
#missing = #exec.step<bias>

// -----

// expected-error @+1 {{relu has no factor}}
#factor = #exec.step<relu by 2.0 : f64>

// -----

// expected-error @+1 {{an operand needs the sizes (offset, extents..., strides...)}}
#sizes = #exec.operand<0 : f32, () -> (0, 1)>
