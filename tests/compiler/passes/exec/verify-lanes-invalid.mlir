// RUN: tcc-opt %s --split-input-file --verify-diagnostics --tcc-verify-lanes
// A race is reported with both commands.

exec.entry @main inputs [#exec.tensor<"x", tensor<16xf32>>] outputs []
    attributes {slots = 0 : i64, lanes = 2 : i64} {
  %x = exec.buffer input 0 bytes affine_map<() -> (64)> bound 64 : !exec.buffer<host>
  %a = exec.buffer scratch bytes affine_map<() -> (64)> bound 64 : !exec.buffer<host>
  %b = exec.buffer scratch bytes affine_map<() -> (64)> bound 64 : !exec.buffer<host>
  %0 = exec.record_event
  // expected-note @+1 {{the other command: exec.copy}}
  exec.copy %x to %a bytes affine_map<() -> (64)> : !exec.buffer<host>, !exec.buffer<host>
  exec.wait %0 {lane = 1 : i64}
  // expected-error @+1 {{on lane 1 may run at the same time as a command on lane 0 that uses the same bytes, and one of them writes them}}
  %1 = exec.start_copy %a to %b bytes affine_map<() -> (64)> {lane = 1 : i64}
    : !exec.buffer<host>, !exec.buffer<host>
  exec.wait %1
}

// -----

// Two buffers at one place in the arena.
exec.entry @main inputs [#exec.tensor<"x", tensor<16xf32>>] outputs []
    attributes {slots = 0 : i64, lanes = 2 : i64} {
  %x = exec.buffer input 0 bytes affine_map<() -> (64)> bound 64 : !exec.buffer<host>
  %a = exec.buffer scratch bytes affine_map<() -> (64)> bound 64 offset 0 : !exec.buffer<host>
  %b = exec.buffer scratch bytes affine_map<() -> (128)> bound 128 offset 0 : !exec.buffer<host>
  %0 = exec.record_event
  exec.wait %0 {lane = 1 : i64}
  // expected-error @+1 {{on lane 1 may run at the same time}}
  %1 = exec.start_copy %x to %a bytes affine_map<() -> (64)> {lane = 1 : i64}
    : !exec.buffer<host>, !exec.buffer<host>
  // expected-note @+1 {{the other command: exec.copy}}
  exec.copy %x to %b bytes affine_map<() -> (64)> : !exec.buffer<host>, !exec.buffer<host>
  exec.wait %1
}

// -----

// Two parts of one buffer, and readers of one buffer, do not race.
exec.entry @main inputs [#exec.tensor<"x", tensor<16xf32>>] outputs []
    attributes {slots = 0 : i64, lanes = 2 : i64} {
  %x = exec.buffer input 0 bytes affine_map<() -> (64)> bound 64 : !exec.buffer<host>
  %a = exec.buffer scratch bytes affine_map<() -> (128)> bound 128 : !exec.buffer<host>
  %low = exec.view %a at affine_map<() -> (0)> bytes affine_map<() -> (64)> bound 64 : !exec.buffer<host>
  %high = exec.view %a at affine_map<() -> (64)> bytes affine_map<() -> (64)> bound 64 : !exec.buffer<host>
  %0 = exec.record_event
  exec.wait %0 {lane = 1 : i64}
  %1 = exec.start_copy %x to %low bytes affine_map<() -> (64)> {lane = 1 : i64}
    : !exec.buffer<host>, !exec.buffer<host>
  exec.copy %x to %high bytes affine_map<() -> (64)> : !exec.buffer<host>, !exec.buffer<host>
  exec.wait %1
}

// -----

exec.entry @main inputs [#exec.tensor<"x", tensor<16xf32>>] outputs []
    attributes {slots = 0 : i64, lanes = 2 : i64} {
  %x = exec.buffer input 0 bytes affine_map<() -> (64)> bound 64 : !exec.buffer<host>
  %a = exec.buffer scratch bytes affine_map<() -> (64)> bound 64 : !exec.buffer<host>
  // expected-error @+1 {{runs on lane 1, which has not waited for lane 0 in this block yet}}
  %0 = exec.start_copy %x to %a bytes affine_map<() -> (64)> {lane = 1 : i64}
    : !exec.buffer<host>, !exec.buffer<host>
  // expected-note @+1 {{the first command of lane 0: exec.wait}}
  exec.wait %0
}

// -----

exec.entry @main inputs [] outputs [] attributes {slots = 0 : i64, lanes = 3 : i64} {
  // expected-note @+1 {{the last command of lane 0: exec.record_event}}
  %0 = exec.record_event
  exec.wait %0 {lane = 1 : i64}
  %1 = exec.record_event {lane = 1 : i64}
  // expected-error @+1 {{ends on lane 2, which lane 0 does not wait for in this block}}
  exec.wait %1 {lane = 2 : i64}
}

// -----

// What is read and what is written of a state that is updated in place.
exec.entry @main inputs [#exec.tensor<"x", tensor<16xf32>>, #exec.tensor<"s", tensor<16xf32>>]
    outputs [#exec.tensor<"t", tensor<16xf32>>]
    attributes {slots = 0 : i64, lanes = 2 : i64, states = [#exec.state<0 to 1>]} {
  %x = exec.buffer input 0 bytes affine_map<() -> (64)> bound 64 : !exec.buffer<host>
  %s = exec.buffer state 0 bytes affine_map<() -> (64)> bound 64 in_place : !exec.buffer<host>
  %t = exec.buffer state 0 bytes affine_map<() -> (64)> bound 64 next in_place : !exec.buffer<host>
  %a = exec.buffer scratch bytes affine_map<() -> (64)> bound 64 : !exec.buffer<host>
  %0 = exec.record_event
  exec.wait %0 {lane = 1 : i64}
  // expected-error @+1 {{on lane 1 may run at the same time}}
  %1 = exec.start_copy %s to %a bytes affine_map<() -> (64)> {lane = 1 : i64}
    : !exec.buffer<host>, !exec.buffer<host>
  // expected-note @+1 {{the other command: exec.copy}}
  exec.copy %x to %t bytes affine_map<() -> (64)> : !exec.buffer<host>, !exec.buffer<host>
  exec.wait %1
}

// -----

// Else they lie apart.
exec.entry @main inputs [#exec.tensor<"x", tensor<16xf32>>, #exec.tensor<"s", tensor<16xf32>>]
    outputs [#exec.tensor<"t", tensor<16xf32>>]
    attributes {slots = 0 : i64, lanes = 2 : i64, states = [#exec.state<0 to 1>]} {
  %x = exec.buffer input 0 bytes affine_map<() -> (64)> bound 64 : !exec.buffer<host>
  %s = exec.buffer state 0 bytes affine_map<() -> (64)> bound 64 : !exec.buffer<host>
  %t = exec.buffer state 0 bytes affine_map<() -> (64)> bound 64 next : !exec.buffer<host>
  %a = exec.buffer scratch bytes affine_map<() -> (64)> bound 64 : !exec.buffer<host>
  %0 = exec.record_event
  exec.wait %0 {lane = 1 : i64}
  %1 = exec.start_copy %s to %a bytes affine_map<() -> (64)> {lane = 1 : i64}
    : !exec.buffer<host>, !exec.buffer<host>
  exec.copy %x to %t bytes affine_map<() -> (64)> : !exec.buffer<host>, !exec.buffer<host>
  exec.wait %1
}
