// RUN: tcc-opt %s --split-input-file --verify-diagnostics | FileCheck %s
// A buffer has a class, a size over the slots and its bound; a view is a part.

module attributes {graph.symbols = [#graph.symbol<"batch", 1 to 8 by 1>]} {
  // CHECK-LABEL: exec.entry @main
  exec.entry @main inputs [#exec.tensor<"x", tensor<4xf32>>] outputs []
      attributes {slots = 1 : i64} {
    // CHECK: exec.buffer input 0 bytes {{.*}} bound 16 : !exec.buffer<host>
    %x = exec.buffer input 0 bytes affine_map<() -> (16)> bound 16 : !exec.buffer<host>
    // CHECK: %[[S:.+]] = exec.buffer scratch bytes {{.*}} bound 512 offset 64
    %s = exec.buffer scratch bytes affine_map<()[s0] -> (s0 * 64)> bound 512 offset 64
      : !exec.buffer<host>
    // CHECK: exec.view %[[S]] at {{.*}} bytes {{.*}} bound 64
    %v = exec.view %s at affine_map<()[s0] -> (s0 * 8)> bytes affine_map<() -> (64)>
      bound 64 : !exec.buffer<host>
  }
}

// -----

exec.entry @main inputs [] outputs [] attributes {slots = 0 : i64} {
  // expected-error @+1 {{index 0 is not below 0}}
  %x = exec.buffer output 0 bytes affine_map<() -> (1)> bound 1 : !exec.buffer<host>
}
