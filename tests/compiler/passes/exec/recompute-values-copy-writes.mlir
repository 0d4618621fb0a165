// RUN: tcc-opt %s --tcc-recompute-values=budget=1792 | FileCheck %s
// What a copy writes that is under way is not read to compute a value again: of
// two the one that is cheaper to compute again, that of exp, is kept.

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
exec.kernel @tanh {
^bb0(%x: !line):
  %0 = graph.fused <pointwise> (%x) : (!line) -> !line {
  ^bb0(%a: !line):
    %1 = graph.tanh %a : (!line) -> !line
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

// A copy writes over what exp would read again.
// CHECK-LABEL: exec.entry @written inputs
// CHECK: exec.launch @exp ins(%[[D:.+]]) outs(%[[A:.+]]) node
// CHECK: exec.launch @sum
// CHECK: %[[T:.+]] = exec.start_copy %{{.+}} to %[[D]] bytes
// CHECK: exec.launch @add ins(%[[A]],
// CHECK: exec.launch @tanh_{{[0-9]+}}
// CHECK: exec.wait %[[T]]
// CHECK-NOT: exec.launch @exp
// CHECK: }
exec.entry @written inputs [#exec.tensor<"x", tensor<64xf32>>]
    outputs [#exec.tensor<"y", tensor<64xf32>>] attributes {slots = 0 : i64} {
  %x = exec.buffer input 0 bytes #size bound 256 : !buffer
  %y = exec.buffer output 0 bytes #size bound 256 : !buffer
  %a = exec.buffer scratch bytes #size bound 256 : !buffer
  %b = exec.buffer scratch bytes #wide bound 1024 : !buffer
  %c = exec.buffer scratch bytes #size bound 256 : !buffer
  %d = exec.buffer scratch bytes #size bound 256 : !buffer
  %e = exec.buffer scratch bytes #size bound 256 : !buffer
  %p = exec.buffer scratch bytes #size bound 256 : !buffer
  %q = exec.buffer scratch bytes #size bound 256 : !buffer
  exec.copy %x to %d bytes #size : !buffer, !buffer
  exec.launch @exp ins(%d) outs(%a) node "exp" : (!buffer) -> !buffer
  exec.launch @tanh ins(%x) outs(%e) node "tanh" : (!buffer) -> !buffer
  exec.launch @repeat ins(%e) outs(%b) node "repeat" : (!buffer) -> !buffer
  exec.launch @sum ins(%b) outs(%c) node "sum" : (!buffer) -> !buffer
  %t = exec.start_copy %x to %d bytes #size : !buffer, !buffer
  exec.launch @add ins(%a, %c) outs(%p) node "add"
      : (!buffer, !buffer) -> !buffer
  exec.launch @add ins(%e, %p) outs(%q) node "add"
      : (!buffer, !buffer) -> !buffer
  exec.wait %t
  exec.launch @add ins(%d, %q) outs(%y) node "add"
      : (!buffer, !buffer) -> !buffer
}

// It writes it afterwards.
// CHECK-LABEL: exec.entry @written_after
// CHECK: exec.launch @sum
// CHECK-NOT: exec.launch @tanh
// CHECK: exec.launch @exp_{{[0-9]+}}
// CHECK-NOT: exec.launch @tanh
// CHECK: }
exec.entry @written_after inputs [#exec.tensor<"x", tensor<64xf32>>]
    outputs [#exec.tensor<"y", tensor<64xf32>>] attributes {slots = 0 : i64} {
  %x = exec.buffer input 0 bytes #size bound 256 : !buffer
  %y = exec.buffer output 0 bytes #size bound 256 : !buffer
  %a = exec.buffer scratch bytes #size bound 256 : !buffer
  %b = exec.buffer scratch bytes #wide bound 1024 : !buffer
  %c = exec.buffer scratch bytes #size bound 256 : !buffer
  %d = exec.buffer scratch bytes #size bound 256 : !buffer
  %e = exec.buffer scratch bytes #size bound 256 : !buffer
  %p = exec.buffer scratch bytes #size bound 256 : !buffer
  %q = exec.buffer scratch bytes #size bound 256 : !buffer
  exec.copy %x to %d bytes #size : !buffer, !buffer
  exec.launch @exp ins(%d) outs(%a) node "exp" : (!buffer) -> !buffer
  exec.launch @tanh ins(%x) outs(%e) node "tanh" : (!buffer) -> !buffer
  exec.launch @repeat ins(%e) outs(%b) node "repeat" : (!buffer) -> !buffer
  exec.launch @sum ins(%b) outs(%c) node "sum" : (!buffer) -> !buffer
  exec.launch @add ins(%a, %c) outs(%p) node "add"
      : (!buffer, !buffer) -> !buffer
  %t = exec.start_copy %x to %d bytes #size : !buffer, !buffer
  exec.launch @add ins(%e, %p) outs(%q) node "add"
      : (!buffer, !buffer) -> !buffer
  exec.wait %t
  exec.launch @add ins(%d, %q) outs(%y) node "add"
      : (!buffer, !buffer) -> !buffer
}
