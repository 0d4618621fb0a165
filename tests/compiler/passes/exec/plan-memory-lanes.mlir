// RUN: tcc-opt %s --tcc-plan-memory | FileCheck %s
// What a copy writes beside other commands is at no place that they still use.

// CHECK-LABEL: exec.entry @main
// CHECK-SAME:    scratch_bytes = 192
exec.entry @main inputs [#exec.tensor<"x", tensor<16xf32>>]
    outputs [#exec.tensor<"y", tensor<16xf32>>]
    attributes {slots = 0 : i64, lanes = 2 : i64} {
  %x = exec.buffer input 0 bytes affine_map<() -> (64)> bound 64 : !exec.buffer<host>
  %y = exec.buffer output 0 bytes affine_map<() -> (64)> bound 64 : !exec.buffer<host>
  // CHECK: exec.buffer scratch {{.*}} offset 0 :
  %a = exec.buffer scratch bytes affine_map<() -> (64)> bound 64 : !exec.buffer<host>
  // CHECK-NEXT: exec.buffer scratch {{.*}} offset 128 :
  %b = exec.buffer scratch bytes affine_map<() -> (64)> bound 64 : !exec.buffer<host>
  // Not where %b lies: that is used before the copy starts, but the copy's lane
  // has not waited for it.
  // CHECK-NEXT: exec.buffer scratch {{.*}} offset 64 :
  %c = exec.buffer scratch bytes affine_map<() -> (64)> bound 64 : !exec.buffer<host>
  // After the wait all but %c is free.
  // CHECK-NEXT: exec.buffer scratch {{.*}} offset 0 :
  %d = exec.buffer scratch bytes affine_map<() -> (64)> bound 64 : !exec.buffer<host>
  exec.copy %x to %a bytes affine_map<() -> (64)> : !exec.buffer<host>, !exec.buffer<host>
  %0 = exec.record_event
  exec.copy %x to %b bytes affine_map<() -> (64)> : !exec.buffer<host>, !exec.buffer<host>
  exec.copy %b to %y bytes affine_map<() -> (64)> : !exec.buffer<host>, !exec.buffer<host>
  exec.wait %0 {lane = 1 : i64}
  %1 = exec.start_copy %a to %c bytes affine_map<() -> (64)> {lane = 1 : i64}
    : !exec.buffer<host>, !exec.buffer<host>
  exec.wait %1
  exec.copy %c to %d bytes affine_map<() -> (64)> : !exec.buffer<host>, !exec.buffer<host>
  exec.copy %d to %y bytes affine_map<() -> (64)> : !exec.buffer<host>, !exec.buffer<host>
}
