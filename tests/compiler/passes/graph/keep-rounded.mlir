// RUN: tcc-opt %s --split-input-file --tcc-keep-rounded | FileCheck %s

module attributes {graph.variables = [
    #graph.variable<"w", parameter, tensor<8x8xf32>>,
    #graph.variable<"frozen", parameter, tensor<8xf32>>,
    #graph.variable<"kept", parameter, tensor<8xf32>>,
    #graph.variable<"exp_avg/w", slot, tensor<8x8xf32> of "w">]} {

// CHECK:         #graph.variable<"rounded/w", rounded, tensor<8x8xbf16> of "w">
// CHECK-SAME:    #graph.variable<"rounded/frozen", rounded, tensor<8xbf16> of "frozen">
// CHECK-NOT:     rounded/kept
// CHECK-NOT:     rounded/exp_avg

// What gives a parameter a value gives its copy one.
// CHECK-LABEL: func @init
// CHECK-SAME:    -> (tensor<8x8xf32> {graph.variable = "w"}, tensor<8x8xbf16> {graph.variable = "rounded/w"})
// CHECK:         %[[W:.+]] = graph.weight "w"
// CHECK:         %[[R:.+]] = graph.cast %[[W]]
// CHECK:         return %[[W]], %[[R]]
func.func @init() -> (tensor<8x8xf32> {graph.variable = "w"}) {
  %w = graph.weight "w" : tensor<8x8xf32>
  return %w : tensor<8x8xf32>
}

// The copy is read, and written with the parameter.
// CHECK-LABEL: func @train_step
// CHECK-SAME:    %[[W:[a-z0-9]+]]: tensor<8x8xf32> {graph.variable = "w"}
// CHECK-SAME:    %[[M:[a-z0-9]+]]: tensor<8x8xf32> {graph.variable = "exp_avg/w"}
// CHECK-SAME:    %[[R:[a-z0-9]+]]: tensor<8x8xbf16> {graph.variable = "rounded/w"}
// CHECK-SAME:    %[[F:[a-z0-9]+]]: tensor<8xbf16> {graph.variable = "rounded/frozen"}
// CHECK:         graph.cast %[[M]]
// CHECK:         graph.matmul {{.*}}, %[[R]]
// CHECK:         %[[NEXT:.+]] = graph.sub %[[W]]
// CHECK:         %[[ROUNDED:.+]] = graph.cast %[[NEXT]]
// CHECK:         return {{.*}}, %[[NEXT]], %[[ROUNDED]]
func.func @train_step(%x: tensor<4x8xbf16> {graph.name = "x"},
                      %w: tensor<8x8xf32> {graph.variable = "w"},
                      %f: tensor<8xf32> {graph.variable = "frozen"},
                      %m: tensor<8x8xf32> {graph.variable = "exp_avg/w"})
    -> (tensor<4x8xf32> {graph.name = "y"}, tensor<8xf32> {graph.name = "z"},
        tensor<8x8xf32> {graph.variable = "w"}) {
  %n = graph.cast %w : (tensor<8x8xf32>) -> tensor<8x8xbf16>
  %a = graph.cast %m : (tensor<8x8xf32>) -> tensor<8x8xbf16>
  %y = graph.matmul %x, %n
    : (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xf32>
  %b = graph.cast %a : (tensor<8x8xbf16>) -> tensor<8x8xf32>
  %g = graph.cast %f : (tensor<8xf32>) -> tensor<8xbf16>
  %z = graph.cast %g : (tensor<8xbf16>) -> tensor<8xf32>
  %v = graph.sub %w, %b : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %y, %z, %v : tensor<4x8xf32>, tensor<8xf32>, tensor<8x8xf32>
}

// A parameter that nothing else reads is none of the function's; what is put together
// of several is stored anyway, and nothing is kept of what is read as it is.
// CHECK-LABEL: func @predict
// CHECK-SAME:    (%[[K:[a-z0-9]+]]: tensor<8xf32> {graph.variable = "kept"}, %{{[a-z0-9]+}}: tensor<8x8xbf16> {graph.variable = "rounded/w"})
// CHECK:         graph.cast %[[K]]
func.func @predict(%w: tensor<8x8xf32> {graph.variable = "w"},
                   %k: tensor<8xf32> {graph.variable = "kept"})
    -> (tensor<8x8xbf16> {graph.name = "y"}, tensor<16xbf16> {graph.name = "z"}) {
  %n = graph.cast %w : (tensor<8x8xf32>) -> tensor<8x8xbf16>
  %y = graph.relu %n : (tensor<8x8xbf16>) -> tensor<8x8xbf16>
  %c = graph.cast %k : (tensor<8xf32>) -> tensor<8xbf16>
  %z = graph.concat %c, %c {axis = 0 : i64}
    : (tensor<8xbf16>, tensor<8xbf16>) -> tensor<16xbf16>
  return %y, %z : tensor<8x8xbf16>, tensor<16xbf16>
}

// CHECK-LABEL: func @round_parameters
// CHECK-SAME:    (%[[W:.+]]: tensor<8x8xf32> {graph.variable = "w"}, %[[F:.+]]: tensor<8xf32> {graph.variable = "frozen"})
// CHECK:         %[[A:.+]] = graph.cast %[[W]]
// CHECK:         %[[B:.+]] = graph.cast %[[F]]
// CHECK:         return %[[A]], %[[B]]
}

// -----

// Functions without variables stay.
// CHECK-LABEL: func @main
// CHECK-NOT:     graph.variable
// CHECK:         graph.cast
// CHECK-NOT:   func
func.func @main(%x: tensor<8xf32>) -> tensor<8xbf16> {
  %y = graph.cast %x : (tensor<8xf32>) -> tensor<8xbf16>
  return %y : tensor<8xbf16>
}
