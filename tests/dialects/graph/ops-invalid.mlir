// RUN: tcc-opt %s --split-input-file --verify-diagnostics
// Wrong ops are refused with what was found and what was expected.

func.func @reduce_axis(%x: tensor<4x8xf32>) {
  // expected-error@+2 {{failed to infer returned types}}
  // expected-error@+1 {{axis 2 is out of range for rank 2}}
  %0 = graph.reduce <sum> %x [2] : (tensor<4x8xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @matmul_common_extent(%a: tensor<2x3xf32>, %b: tensor<4x5xf32>) {
  // expected-error@+1 {{lhs and rhs differ in their common extent}}
  %0 = graph.matmul %a, %b : (tensor<2x3xf32>, tensor<4x5xf32>) -> tensor<2x5xf32>
  return
}

// -----

func.func @conv_groups(%x: tensor<1x3x8x8xf32>, %f: tensor<4x1x3x3xf32>) {
  // expected-error@+1 {{cannot split 3 channels and 4 filters into 2 groups}}
  %0 = graph.conv %x, %f {filters = 4 : i64, groups = 2 : i64,
    window = array<i64: 3, 3>, strides = array<i64: 1, 1>,
    pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>,
    dilations = array<i64: 1, 1>}
    : (tensor<1x3x8x8xf32>, tensor<4x1x3x3xf32>) -> tensor<1x4x6x6xf32>
  return
}

// -----

func.func @if_condition(%c: tensor<2xi1>, %x: tensor<4xf32>) {
  // expected-error@+1 {{expected a boolean condition with one element}}
  %0 = graph.if %c : (tensor<2xi1>) -> tensor<4xf32> {
    graph.yield %x : tensor<4xf32>
  } else {
    graph.yield %x : tensor<4xf32>
  }
  return
}
