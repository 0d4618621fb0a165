// RUN: tcc-opt %s --split-input-file --verify-diagnostics | FileCheck %s
// A lane waits only for what another one records before.

// CHECK-LABEL: exec.entry @main
exec.entry @main inputs [#exec.tensor<"x", tensor<4xf32>>] outputs []
    attributes {slots = 0 : i64, events = 1 : i64, lanes = 2 : i64} {
  %x = exec.buffer input 0 bytes affine_map<() -> (16)> bound 16 : !exec.buffer<host>
  // CHECK: exec.record_event 0
  exec.record_event 0
  // CHECK-NEXT: exec.wait_event 0 {lane = 1 : i64}
  exec.wait_event 0 {lane = 1 : i64}
  // CHECK-NEXT: exec.all_reduce sum %{{.*}} as f32 count
  exec.all_reduce sum %x as f32 count affine_map<() -> (4)> : !exec.buffer<host>
}

// -----

exec.entry @main inputs [] outputs []
    attributes {slots = 0 : i64, events = 1 : i64, lanes = 2 : i64} {
  // expected-error @+1 {{lane 2 is not below 2}}
  exec.record_event 0 {lane = 2 : i64}
}
