// RUN: tcc-opt %s --split-input-file --verify-diagnostics | FileCheck %s
// Random numbers are of the type of the result.

// CHECK-LABEL: func @kinds
func.func @kinds(%seed: tensor<i64>, %step: tensor<i64>) {
  // CHECK: graph.random <uniform> %{{.*}}, %{{.*}} {key = 7 : i64} :
  // CHECK-SAME: (tensor<i64>, tensor<i64>) -> tensor<4x8xf32>
  %0 = graph.random <uniform> %seed, %step {key = 7 : i64}
    : (tensor<i64>, tensor<i64>) -> tensor<4x8xf32>
  // CHECK: graph.random <normal>
  %1 = graph.random <normal> %seed, %step {key = 8 : i64}
    : (tensor<i64>, tensor<i64>) -> tensor<f64>
  return
}

// -----

func.func @seed(%seed: tensor<1xi64>, %step: tensor<i64>) {
  // expected-error@+1 {{expected seed and step to be i64 scalars, found 'tensor<1xi64>'}}
  %0 = graph.random <uniform> %seed, %step {key = 7 : i64}
    : (tensor<1xi64>, tensor<i64>) -> tensor<4xf32>
  return
}

// -----

func.func @narrow(%seed: tensor<i64>) {
  // expected-error@+1 {{expected a result of f32 or f64, found 'bf16'}}
  %0 = graph.random <uniform> %seed, %seed {key = 7 : i64}
    : (tensor<i64>, tensor<i64>) -> tensor<4xbf16>
  return
}
