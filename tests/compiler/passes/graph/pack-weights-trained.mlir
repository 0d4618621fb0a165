// RUN: tcc-opt %s --split-input-file --tcc-pack-weights | FileCheck %s

module attributes {graph.variables = [#graph.variable<"w", parameter, tensor<128x32xf32>>]} {
  // Panels of what is trained are made in each run, where enough rows read them.
  // CHECK-LABEL: func.func @many_rows
  // CHECK:         %[[P:.+]] = graph.transpose
  // CHECK:         graph.matmul %arg0, %{{.+}} {packed_rhs}
  func.func @many_rows(%x: tensor<4x64x32xf32>, %w: tensor<128x32xf32> {graph.variable = "w"}) -> tensor<4x64x128xf32> {
    %y = graph.matmul %x, %w {transpose_rhs} : (tensor<4x64x32xf32>, tensor<128x32xf32>) -> tensor<4x64x128xf32>
    return %y : tensor<4x64x128xf32>
  }

  // CHECK-LABEL: func.func @few_rows
  // CHECK:         graph.matmul %arg0, %arg1 {transpose_rhs}
  func.func @few_rows(%x: tensor<64x32xf32>, %w: tensor<128x32xf32> {graph.variable = "w"}) -> tensor<64x128xf32> {
    %y = graph.matmul %x, %w {transpose_rhs} : (tensor<64x32xf32>, tensor<128x32xf32>) -> tensor<64x128xf32>
    return %y : tensor<64x128xf32>
  }

  // An activation is read as it is.
  // CHECK-LABEL: func.func @activation
  // CHECK:         graph.matmul %arg0, %arg1
  // CHECK-NOT:     packed_rhs
  func.func @activation(%x: tensor<512x32xf32>, %k: tensor<32x128xf32>) -> tensor<512x128xf32> {
    %y = graph.matmul %x, %k : (tensor<512x32xf32>, tensor<32x128xf32>) -> tensor<512x128xf32>
    return %y : tensor<512x128xf32>
  }

  // Any filter: of a weight's gradient it is the gradient of the result.
  // CHECK-LABEL: func.func @filter
  // CHECK:         graph.conv %arg0, %{{.+}} {channels_last, {{.*}}packed_filter
  func.func @filter(%x: tensor<1x8x8x4xf32>, %f: tensor<32x3x3x4xf32>) -> tensor<1x6x6x32xf32> {
    %y = graph.conv %x, %f {channels_last, dilations = array<i64: 1, 1>, filters = 32 : i64, groups = 1 : i64,
        pad_high = array<i64: 0, 0>, pad_low = array<i64: 0, 0>, strides = array<i64: 1, 1>, window = array<i64: 3, 3>}
      : (tensor<1x8x8x4xf32>, tensor<32x3x3x4xf32>) -> tensor<1x6x6x32xf32>
    return %y : tensor<1x6x6x32xf32>
  }
}
