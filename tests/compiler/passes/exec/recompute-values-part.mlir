// RUN: tcc-opt %s --tcc-phase-lower --tcc-update-variables --tcc-schedule-commands \
// RUN:   --tcc-recompute-values=budget=1280 | FileCheck %s
// A part of a kernel that writes a variable in place reads buffers of its own.

// CHECK:       exec.kernel
// CHECK:         graph.fused <pointwise> (%{{.+}}, %{{.+}}) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32> {
// CHECK:           graph.exp
// CHECK:       exec.kernel
// CHECK:         graph.fused <pointwise> {{.*}} {in_place = [array<i64: 0, 0>]}
// CHECK:           graph.exp
!line = tensor<64xf32>
!lines = tensor<4x64xf32>
module attributes {graph.variables = [
    #graph.variable<"v", parameter, tensor<64xf32>>]} {
  func.func @step(%x: !line, %z: !line, %v: !line {graph.variable = "v"}) -> (!line, !line {graph.variable = "v"}) {
    %0:2 = graph.fused <pointwise> (%v, %x, %z) : (!line, !line, !line) -> (!line, !line) {
    ^bb0(%w: !line, %a: !line, %zz: !line):
      %2 = graph.add %w, %w : (!line, !line) -> !line
      %1 = graph.exp %a : (!line) -> !line
      %3 = graph.add %1, %zz : (!line, !line) -> !line
      graph.yield %2, %3 : !line, !line
    }
    %b = graph.fused <pointwise> (%0#1) : (!line) -> !lines {
    ^bb0(%a: !line):
      %1 = graph.broadcast %a : (!line) -> !lines
      graph.yield %1 : !lines
    }
    %c = graph.fused <row> (%b) : (!lines) -> !line {
    ^bb0(%a: !lines):
      %1 = graph.reduce <sum> %a [0] : (!lines) -> !line
      graph.yield %1 : !line
    }
    %d = graph.fused <pointwise> (%0#1, %c) : (!line, !line) -> !line {
    ^bb0(%a: !line, %bb: !line):
      %1 = graph.add %a, %bb : (!line, !line) -> !line
      graph.yield %1 : !line
    }
    return %d, %0#0 : !line, !line
  }
}
