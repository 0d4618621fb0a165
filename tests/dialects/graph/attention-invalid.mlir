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
