// RUN: tcc-opt %s --tcc-assign-lanes | FileCheck %s
// What is started waits for the last command that it must not overtake, and for
// nothing that its lane has waited for.

// CHECK-LABEL: exec.entry @copies
// CHECK-SAME:    lanes = 2
exec.entry @copies inputs [#exec.tensor<"x", tensor<16xf32>>]
    outputs [#exec.tensor<"y", tensor<16xf32>>] attributes {slots = 0 : i64} {
  %x = exec.buffer input 0 bytes affine_map<() -> (64)> bound 64 : !exec.buffer<host>
  %y = exec.buffer output 0 bytes affine_map<() -> (64)> bound 64 : !exec.buffer<host>
  %a = exec.buffer scratch bytes affine_map<() -> (64)> bound 64 : !exec.buffer<host>
  %b = exec.buffer scratch bytes affine_map<() -> (64)> bound 64 : !exec.buffer<host>
  %c = exec.buffer scratch bytes affine_map<() -> (64)> bound 64 : !exec.buffer<host>
  // CHECK: exec.copy %[[X:.+]] to %[[A:.+]] bytes
  exec.copy %x to %a bytes affine_map<() -> (64)> : !exec.buffer<host>, !exec.buffer<host>
  // CHECK-NEXT: %[[E:.+]] = exec.record_event
  // CHECK-NEXT: exec.copy %[[X]] to %[[C:.+]] bytes
  exec.copy %x to %c bytes affine_map<() -> (64)> : !exec.buffer<host>, !exec.buffer<host>
  // CHECK-NEXT: exec.wait %[[E]] {lane = 1 : i64}
  // CHECK-NEXT: %[[T:.+]] = exec.start_copy %[[A]] to %[[B:.+]] bytes {{.*}} {lane = 1 : i64}
  %0 = exec.start_copy %a to %b bytes affine_map<() -> (64)> : !exec.buffer<host>, !exec.buffer<host>
  // The lane has waited for the copy to %a.
  // CHECK-NEXT: exec.start_copy %[[A]] to %{{.*}} bytes {{.*}} {lane = 1 : i64}
  %1 = exec.start_copy %a to %y bytes affine_map<() -> (64)> : !exec.buffer<host>, !exec.buffer<host>
  // CHECK-NEXT: exec.wait %[[T]]{{$}}
  exec.wait %0
  exec.wait %1
  exec.copy %b to %y bytes affine_map<() -> (64)> : !exec.buffer<host>, !exec.buffer<host>
}

// Each group of ranks has a lane; a block begins and ends on lane 0.
// CHECK-LABEL: exec.entry @groups
// CHECK-SAME:    lanes = 3
exec.entry @groups inputs [#exec.tensor<"x", tensor<16xf32>>] outputs []
    attributes {slots = 1 : i64} {
  %x = exec.buffer input 0 bytes affine_map<() -> (64)> bound 64 : !exec.buffer<host>
  // CHECK: exec.loop
  exec.loop 0 trips affine_map<() -> (3)> max 3 node "loop" {
    %a = exec.buffer scratch bytes affine_map<() -> (64)> bound 64 : !exec.buffer<host>
    %b = exec.buffer scratch bytes affine_map<() -> (64)> bound 64 : !exec.buffer<host>
    // CHECK-COUNT-2: exec.record_event
    // CHECK:      exec.wait %{{.*}} {lane = 1 : i64}
    // CHECK-NEXT: %[[T:.+]] = exec.start_all_reduce {{.*}} {lane = 1 : i64}
    %0 = exec.start_all_reduce %x to %a as f32 count affine_map<() -> (16)>
      : !exec.buffer<host>, !exec.buffer<host>
    // CHECK-NEXT: exec.wait %{{.*}} {lane = 2 : i64}
    // CHECK-NEXT: exec.start_all_reduce {{.*}} {group = 4 : i64, lane = 2 : i64}
    %1 = exec.start_all_reduce %x to %b as f32 count affine_map<() -> (16)> {group = 4 : i64}
      : !exec.buffer<host>, !exec.buffer<host>
    exec.wait %0
    exec.wait %1
  }
}

// A place that is marked stays on lane 0, and so does the wait for it.
// CHECK-LABEL: exec.entry @marked
// CHECK-NEXT:    %[[BEGIN:.+]] = exec.record_event{{$}}
// CHECK:         %[[E:.+]] = exec.record_event{{$}}
// CHECK-NEXT:    exec.wait %[[E]]{{$}}
// CHECK-NEXT:    exec.wait %[[BEGIN]] {lane = 1 : i64}
// CHECK-NEXT:    exec.start_all_reduce
exec.entry @marked inputs [#exec.tensor<"x", tensor<16xf32>>] outputs []
    attributes {slots = 0 : i64} {
  %x = exec.buffer input 0 bytes affine_map<() -> (64)> bound 64 : !exec.buffer<host>
  %a = exec.buffer scratch bytes affine_map<() -> (64)> bound 64 : !exec.buffer<host>
  %0 = exec.record_event
  exec.wait %0
  %1 = exec.start_all_reduce %x to %a as f32 count affine_map<() -> (16)>
    : !exec.buffer<host>, !exec.buffer<host>
  exec.wait %1
}

// CHECK-LABEL: exec.entry @one_lane
// CHECK-NOT:     lane
// CHECK:         exec.copy
exec.entry @one_lane inputs [#exec.tensor<"x", tensor<16xf32>>] outputs []
    attributes {slots = 0 : i64} {
  %x = exec.buffer input 0 bytes affine_map<() -> (64)> bound 64 : !exec.buffer<host>
  %a = exec.buffer scratch bytes affine_map<() -> (64)> bound 64 : !exec.buffer<host>
  exec.copy %x to %a bytes affine_map<() -> (64)> : !exec.buffer<host>, !exec.buffer<host>
}

// The new value of a state that is updated in place lies where the old one does.
// CHECK-LABEL: exec.entry @state
exec.entry @state inputs [#exec.tensor<"x", tensor<16xf32>>, #exec.tensor<"s", tensor<16xf32>>]
    outputs [#exec.tensor<"t", tensor<16xf32>>]
    attributes {slots = 0 : i64, states = [#exec.state<0 to 1>]} {
  %x = exec.buffer input 0 bytes affine_map<() -> (64)> bound 64 : !exec.buffer<host>
  %s = exec.buffer state 0 bytes affine_map<() -> (64)> bound 64 in_place : !exec.buffer<host>
  %t = exec.buffer state 0 bytes affine_map<() -> (64)> bound 64 next in_place : !exec.buffer<host>
  %a = exec.buffer scratch bytes affine_map<() -> (64)> bound 64 : !exec.buffer<host>
  // CHECK:      exec.copy
  // CHECK-NEXT: %[[E:.+]] = exec.record_event
  // CHECK-NEXT: exec.wait %[[E]] {lane = 1 : i64}
  // CHECK-NEXT: exec.start_copy
  exec.copy %x to %t bytes affine_map<() -> (64)> : !exec.buffer<host>, !exec.buffer<host>
  %0 = exec.start_copy %s to %a bytes affine_map<() -> (64)> : !exec.buffer<host>, !exec.buffer<host>
  exec.wait %0
}

// CHECK-LABEL: exec.entry @state_of_two_places
// CHECK-NEXT:    %[[E:.+]] = exec.record_event
exec.entry @state_of_two_places
    inputs [#exec.tensor<"x", tensor<16xf32>>, #exec.tensor<"s", tensor<16xf32>>]
    outputs [#exec.tensor<"t", tensor<16xf32>>]
    attributes {slots = 0 : i64, states = [#exec.state<0 to 1>]} {
  %x = exec.buffer input 0 bytes affine_map<() -> (64)> bound 64 : !exec.buffer<host>
  %s = exec.buffer state 0 bytes affine_map<() -> (64)> bound 64 : !exec.buffer<host>
  %t = exec.buffer state 0 bytes affine_map<() -> (64)> bound 64 next : !exec.buffer<host>
  %a = exec.buffer scratch bytes affine_map<() -> (64)> bound 64 : !exec.buffer<host>
  // CHECK:      exec.copy
  // CHECK-NEXT: exec.wait %[[E]] {lane = 1 : i64}
  exec.copy %x to %t bytes affine_map<() -> (64)> : !exec.buffer<host>, !exec.buffer<host>
  %0 = exec.start_copy %s to %a bytes affine_map<() -> (64)> : !exec.buffer<host>, !exec.buffer<host>
  exec.wait %0
}
