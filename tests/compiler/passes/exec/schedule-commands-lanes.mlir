// RUN: tcc-opt %s --tcc-schedule-commands | FileCheck %s
// What is started goes on beside what does not use it, while no more is live.

// CHECK-LABEL: exec.entry @beside
exec.entry @beside inputs [#exec.tensor<"x", tensor<16xf32>>]
    outputs [#exec.tensor<"y", tensor<16xf32>>, #exec.tensor<"z", tensor<16xf32>>]
    attributes {slots = 0 : i64} {
  %x = exec.buffer input 0 bytes affine_map<() -> (64)> bound 64 : !exec.buffer<host>
  %y = exec.buffer output 0 bytes affine_map<() -> (64)> bound 64 : !exec.buffer<host>
  %z = exec.buffer output 1 bytes affine_map<() -> (64)> bound 64 : !exec.buffer<host>
  %a = exec.buffer scratch bytes affine_map<() -> (64)> bound 64 : !exec.buffer<host>
  // CHECK:      %[[T:.+]] = exec.start_all_reduce
  // CHECK-NEXT: exec.copy
  exec.copy %x to %z bytes affine_map<() -> (64)> : !exec.buffer<host>, !exec.buffer<host>
  %0 = exec.start_all_reduce %x to %a as f32 count affine_map<() -> (16)>
    : !exec.buffer<host>, !exec.buffer<host>
  exec.wait %0
  // CHECK-NEXT: exec.copy
  exec.copy %x to %z bytes affine_map<() -> (64)> : !exec.buffer<host>, !exec.buffer<host>
  // CHECK-NEXT: exec.wait %[[T]]
  // CHECK-NEXT: exec.copy
  exec.copy %a to %y bytes affine_map<() -> (64)> : !exec.buffer<host>, !exec.buffer<host>
}

// Ranks run the collectives of a group in one order: the second one may not go
// before the first.
// CHECK-LABEL: exec.entry @group
exec.entry @group inputs [#exec.tensor<"x", tensor<16xf32>>]
    outputs [#exec.tensor<"y", tensor<16xf32>>, #exec.tensor<"z", tensor<16xf32>>]
    attributes {slots = 0 : i64} {
  %x = exec.buffer input 0 bytes affine_map<() -> (64)> bound 64 : !exec.buffer<host>
  %y = exec.buffer output 0 bytes affine_map<() -> (64)> bound 64 : !exec.buffer<host>
  %z = exec.buffer output 1 bytes affine_map<() -> (64)> bound 64 : !exec.buffer<host>
  %a = exec.buffer scratch bytes affine_map<() -> (64)> bound 64 : !exec.buffer<host>
  // CHECK:      exec.copy
  exec.copy %x to %a bytes affine_map<() -> (64)> : !exec.buffer<host>, !exec.buffer<host>
  // CHECK-NEXT: exec.start_all_reduce %{{.*}} to %[[Y:.+]] as
  %0 = exec.start_all_reduce %a to %y as f32 count affine_map<() -> (16)>
    : !exec.buffer<host>, !exec.buffer<host>
  // CHECK-NEXT: exec.start_all_reduce
  %1 = exec.start_all_reduce %x to %z as f32 count affine_map<() -> (16)>
    : !exec.buffer<host>, !exec.buffer<host>
  exec.wait %0
  exec.wait %1
}
