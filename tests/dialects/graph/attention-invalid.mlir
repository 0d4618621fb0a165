// RUN: tcc-opt %s --split-input-file --verify-diagnostics

func.func @depth(%q: tensor<2x8x16xf32>, %k: tensor<2x4x8xf32>, %v: tensor<2x4x16xf32>) {
  // expected-error@+1 {{query and key differ in their common extent}}
  %0 = graph.attention %q, %k, %v {scale = 1.0 : f64}
    : (tensor<2x8x16xf32>, tensor<2x4x8xf32>, tensor<2x4x16xf32>) -> tensor<2x8x16xf32>
  return
}

// -----

func.func @batch(%q: tensor<2x8x16xf32>, %k: tensor<1x4x16xf32>) {
  // expected-error@+1 {{operands differ in batch axis 0}}
  %0 = graph.attention %q, %k, %k {scale = 1.0 : f64}
    : (tensor<2x8x16xf32>, tensor<1x4x16xf32>, tensor<1x4x16xf32>) -> tensor<2x8x16xf32>
  return
}

// -----

func.func @values(%q: tensor<8x16xf32>, %k: tensor<4x16xf32>, %v: tensor<5x16xf32>) {
  // expected-error@+1 {{there is not one value for each key}}
  %0 = graph.attention %q, %k, %v {scale = 1.0 : f64}
    : (tensor<8x16xf32>, tensor<4x16xf32>, tensor<5x16xf32>) -> tensor<8x16xf32>
  return
}

// -----

func.func @mask(%q: tensor<2x8x16xf32>, %m: tensor<2x1x8xf32>) {
  // expected-error@+1 {{the mask has not the extents of the scores}}
  %0 = graph.attention %q, %q, %q mask %m {scale = 1.0 : f64}
    : (tensor<2x8x16xf32>, tensor<2x8x16xf32>, tensor<2x8x16xf32>, tensor<2x1x8xf32>)
    -> tensor<2x8x16xf32>
  return
}

// -----

func.func @repeats(%q: tensor<6x8x16xf32>, %m: tensor<4x8x8xf32>) {
  // expected-error@+1 {{the mask has not the extents of the scores}}
  %0 = graph.attention %q, %q, %q mask %m {scale = 1.0 : f64}
    : (tensor<6x8x16xf32>, tensor<6x8x16xf32>, tensor<6x8x16xf32>, tensor<4x8x8xf32>)
    -> tensor<6x8x16xf32>
  return
}

// -----

func.func @no_mask(%q: tensor<8x16xf32>, %n: tensor<8x1xf32>) {
  // expected-error@+1 {{there is no mask}}
  %0 = graph.attention_gradient <mask> %q, %q, %q, %q, %n, %n {scale = 1.0 : f64}
    : (tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>,
       tensor<8x1xf32>, tensor<8x1xf32>) -> tensor<1x8x8xf32>
  return
}

// -----

func.func @gradients(%q: tensor<8x16xf32>, %v: tensor<8x4xf32>, %n: tensor<8x1xf32>) {
  // expected-error@+1 {{query, key and value differ in their extents}}
  %0 = graph.attention_gradient <all> %q, %q, %v, %v, %n, %n {scale = 1.0 : f64}
    : (tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x4xf32>, tensor<8x4xf32>,
       tensor<8x1xf32>, tensor<8x1xf32>) -> tensor<3x8x16xf32>
  return
}

// -----

func.func @parts(%q: tensor<8x16xf32>, %n: tensor<8x1xf32>) {
  // expected-error@+1 {{the result has not the extents of what it belongs to}}
  %0 = graph.attention_gradient <all> %q, %q, %q, %q, %n, %n {scale = 1.0 : f64}
    : (tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>,
       tensor<8x1xf32>, tensor<8x1xf32>) -> tensor<2x8x16xf32>
  return
}

// -----

func.func @normalizer(%q: tensor<8x16xf32>) {
  // expected-error@+1 {{expected one number a query}}
  %0, %1 = graph.attention %q, %q, %q {scale = 1.0 : f64}
    : (tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>)
    -> (tensor<8x16xf32>, tensor<8x2xf32>)
  return
}
