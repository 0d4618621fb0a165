// RUN: tcc-opt %s --tcc-recompute-values=budget=1280 | FileCheck %s
// RUN: tcc-opt %s --tcc-recompute-values=budget=1536 | FileCheck %s --check-prefix=ROOM
// RUN: not tcc-opt %s --tcc-recompute-values="budget=1216 fixed=64" 2>&1 \
// RUN:   | FileCheck %s --check-prefix=LITTLE

#size = affine_map<() -> (256)>
#wide = affine_map<() -> (1024)>
!buffer = !exec.buffer<host>
!line = tensor<64xf32>
!lines = tensor<4x64xf32>
exec.kernel @exp {
^bb0(%x: !line):
  %0 = graph.fused <pointwise> (%x) : (!line) -> !line {
  ^bb0(%a: !line):
    %1 = graph.exp %a : (!line) -> !line
    graph.yield %1 : !line
  }
}
exec.kernel @repeat {
^bb0(%x: !line):
  %0 = graph.fused <pointwise> (%x) : (!line) -> !lines {
  ^bb0(%a: !line):
    %1 = graph.broadcast %a : (!line) -> !lines
    graph.yield %1 : !lines
  }
}
exec.kernel @sum {
^bb0(%x: !lines):
  %0 = graph.fused <row> (%x) : (!lines) -> !line {
  ^bb0(%a: !lines):
    %1 = graph.reduce <sum> %a [0] : (!lines) -> !line
    graph.yield %1 : !line
  }
}
exec.kernel @add {
^bb0(%x: !line, %y: !line):
  %0 = graph.fused <pointwise> (%x, %y) : (!line, !line) -> !line {
  ^bb0(%a: !line, %b: !line):
    %1 = graph.add %a, %b : (!line, !line) -> !line
    graph.yield %1 : !line
  }
}

// What is read at the end is computed again rather than kept beside the rest.
// CHECK: exec.launch @exp ins(%[[X:.+]]) outs(%[[A:.+]]) node
// CHECK-NEXT: exec.launch @repeat ins(%[[A]]) outs(%[[B:.+]]) node
// CHECK-NEXT: exec.launch @sum ins(%[[B]]) outs(%[[C:.+]]) node
// CHECK-NEXT: exec.launch @exp_{{[0-9]+}} ins(%[[X]]) outs(%[[AGAIN:.+]]) node
// CHECK-NEXT: exec.launch @add ins(%[[AGAIN]], %[[C]]) outs
// With room it is kept.
// ROOM-COUNT-4: exec.launch
// ROOM-NOT: exec.launch
// LITTLE: does not fit into 1216 bytes; the smallest budget is 1344 bytes, of which 64 are no arena; the largest in @main: repeat (1024 bytes)
exec.entry @main inputs [#exec.tensor<"x", tensor<64xf32>>]
    outputs [#exec.tensor<"y", tensor<64xf32>>] attributes {slots = 0 : i64} {
  %x = exec.buffer input 0 bytes #size bound 256 : !buffer
  %y = exec.buffer output 0 bytes #size bound 256 : !buffer
  %a = exec.buffer scratch bytes #size bound 256 : !buffer
  %b = exec.buffer scratch bytes #wide bound 1024 : !buffer
  %c = exec.buffer scratch bytes #size bound 256 : !buffer
  exec.launch @exp ins(%x) outs(%a) node "exp" : (!buffer) -> !buffer
  exec.launch @repeat ins(%a) outs(%b) node "repeat" : (!buffer) -> !buffer
  exec.launch @sum ins(%b) outs(%c) node "sum" : (!buffer) -> !buffer
  exec.launch @add ins(%a, %c) outs(%y) node "add"
      : (!buffer, !buffer) -> !buffer
}
