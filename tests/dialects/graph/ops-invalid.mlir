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

// -----

func.func @softmax_of_integers(%x: tensor<4xi32>) {
  // expected-error@+1 {{operand #0 must be ranked tensor of floating-point values}}
  %0 = graph.softmax %x {axis = 0 : i64} : (tensor<4xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @batch_norm_channels(%x: tensor<1x3x5xf32>, %v: tensor<4xf32>) {
  // expected-error@+1 {{expected one value a channel of 'tensor<1x3x5xf32>', found 'tensor<4xf32>'}}
  %0 = graph.batch_norm %x, %v, %v, %v, %v {epsilon = 1.0e-5 : f64}
    : (tensor<1x3x5xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>,
       tensor<4xf32>) -> tensor<1x3x5xf32>
  return
}
