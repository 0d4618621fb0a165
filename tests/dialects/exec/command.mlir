// RUN: tcc-opt %s --split-input-file --verify-diagnostics | FileCheck %s
// A launch names what it reads and writes; sizes are set before they are used.

// CHECK-LABEL: exec.entry @main
exec.entry @main inputs [#exec.tensor<"n", tensor<i64>>] outputs []
    attributes {slots = 1 : i64} {
  %n = exec.buffer input 0 bytes affine_map<() -> (8)> bound 8 : !exec.buffer<host>
  %a = exec.buffer scratch bytes affine_map<() -> (8)> bound 8 : !exec.buffer<host>
  // CHECK: exec.read_size 0 from %{{.*}} as i64 in 0 to 9 node "/count" what "count"
  exec.read_size 0 from %n as i64 in 0 to 9 node "/count" what "count" : !exec.buffer<host>
  // CHECK: exec.set_size 0 to
  exec.set_size 0 to affine_map<()[s0] -> (s0 + 1)>
  // CHECK: exec.copy %[[N:.+]] to %[[A:.+]] bytes
  exec.copy %n to %a bytes affine_map<() -> (8)> : !exec.buffer<host>, !exec.buffer<host>
}

// -----

exec.entry @main inputs [] outputs [] attributes {slots = 1 : i64} {
  // expected-error @+1 {{reads size slot 0, which is not set here}}
  exec.set_size 0 to affine_map<()[s0] -> (s0 + 1)>
}
