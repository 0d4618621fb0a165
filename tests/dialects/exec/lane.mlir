// RUN: tcc-opt %s --split-input-file --verify-diagnostics | FileCheck %s
// A lane goes on when what another one recorded, or started, is done.

// CHECK-LABEL: exec.entry @main
exec.entry @main inputs [#exec.tensor<"x", tensor<4xf32>>] outputs []
    attributes {slots = 0 : i64, lanes = 2 : i64} {
  %x = exec.buffer input 0 bytes affine_map<() -> (16)> bound 16 : !exec.buffer<host>
  %y = exec.buffer scratch bytes affine_map<() -> (16)> bound 16 : !exec.buffer<host>
  // CHECK: %[[HERE:.+]] = exec.record_event
  %here = exec.record_event
  // CHECK-NEXT: exec.wait %[[HERE]] {lane = 1 : i64}
  exec.wait %here {lane = 1 : i64}
  // CHECK-NEXT: %[[COPIED:.+]] = exec.start_copy %{{.*}} to %{{.*}} bytes {{.*}} {lane = 1 : i64}
  %copied = exec.start_copy %x to %y bytes affine_map<() -> (16)> {lane = 1 : i64}
    : !exec.buffer<host>, !exec.buffer<host>
  // CHECK-NEXT: exec.wait %[[COPIED]]
  exec.wait %copied
}

// -----

exec.entry @main inputs [] outputs [] attributes {slots = 0 : i64, lanes = 2 : i64} {
  // expected-error @+1 {{lane 2 is not below 2}}
  %here = exec.record_event {lane = 2 : i64}
  exec.wait %here
}

// -----

exec.entry @main inputs [] outputs [] attributes {slots = 1 : i64, lanes = 2 : i64} {
  // expected-error @+1 {{is done by the host, which issues lane 0}}
  exec.set_size 0 to affine_map<() -> (1)> {lane = 1 : i64}
}

// -----

exec.entry @main inputs [] outputs [] attributes {slots = 0 : i64, lanes = 2 : i64} {
  // expected-error @+1 {{has a token that is waited for 0 times, expected once}}
  %here = exec.record_event
}

// -----

exec.entry @main inputs [] outputs [] attributes {slots = 0 : i64, lanes = 3 : i64} {
  // expected-error @+1 {{has a token that is waited for 2 times, expected once}}
  %here = exec.record_event
  exec.wait %here {lane = 1 : i64}
  exec.wait %here {lane = 2 : i64}
}

// -----

exec.entry @main inputs [] outputs [] attributes {slots = 1 : i64, lanes = 2 : i64} {
  // expected-error @+1 {{has a token that is waited for in another block}}
  %here = exec.record_event
  exec.loop 0 trips affine_map<() -> (3)> max 3 node "loop" {
    exec.wait %here {lane = 1 : i64}
  }
}
