// RUN: tcc-opt %s --tcc-assign-lanes --tcc-verify-lanes | FileCheck %s
// The runtime takes 16 lanes: a group of ranks more shares one with another.

// CHECK-LABEL: exec.entry @main
// CHECK-SAME:    lanes = 16
// CHECK:         exec.start_all_reduce {{.*}}lane = 1 : i64}
// CHECK:         exec.start_all_reduce {{.*}} {group = 14 : i64, lane = 15 : i64}
// CHECK:         exec.start_all_reduce {{.*}} {group = 15 : i64, lane = 1 : i64}
exec.entry @main inputs [#exec.tensor<"x", tensor<16xf32>>] outputs []
    attributes {slots = 0 : i64} {
  %x = exec.buffer input 0 bytes affine_map<() -> (64)> bound 64 : !exec.buffer<host>
  %0 = exec.start_all_reduce %x to %x as f32 count affine_map<() -> (16)>
    : !exec.buffer<host>, !exec.buffer<host>
  exec.wait %0
  %1 = exec.start_all_reduce %x to %x as f32 count affine_map<() -> (16)> {group = 1 : i64}
    : !exec.buffer<host>, !exec.buffer<host>
  exec.wait %1
  %2 = exec.start_all_reduce %x to %x as f32 count affine_map<() -> (16)> {group = 2 : i64}
    : !exec.buffer<host>, !exec.buffer<host>
  exec.wait %2
  %3 = exec.start_all_reduce %x to %x as f32 count affine_map<() -> (16)> {group = 3 : i64}
    : !exec.buffer<host>, !exec.buffer<host>
  exec.wait %3
  %4 = exec.start_all_reduce %x to %x as f32 count affine_map<() -> (16)> {group = 4 : i64}
    : !exec.buffer<host>, !exec.buffer<host>
  exec.wait %4
  %5 = exec.start_all_reduce %x to %x as f32 count affine_map<() -> (16)> {group = 5 : i64}
    : !exec.buffer<host>, !exec.buffer<host>
  exec.wait %5
  %6 = exec.start_all_reduce %x to %x as f32 count affine_map<() -> (16)> {group = 6 : i64}
    : !exec.buffer<host>, !exec.buffer<host>
  exec.wait %6
  %7 = exec.start_all_reduce %x to %x as f32 count affine_map<() -> (16)> {group = 7 : i64}
    : !exec.buffer<host>, !exec.buffer<host>
  exec.wait %7
  %8 = exec.start_all_reduce %x to %x as f32 count affine_map<() -> (16)> {group = 8 : i64}
    : !exec.buffer<host>, !exec.buffer<host>
  exec.wait %8
  %9 = exec.start_all_reduce %x to %x as f32 count affine_map<() -> (16)> {group = 9 : i64}
    : !exec.buffer<host>, !exec.buffer<host>
  exec.wait %9
  %10 = exec.start_all_reduce %x to %x as f32 count affine_map<() -> (16)> {group = 10 : i64}
    : !exec.buffer<host>, !exec.buffer<host>
  exec.wait %10
  %11 = exec.start_all_reduce %x to %x as f32 count affine_map<() -> (16)> {group = 11 : i64}
    : !exec.buffer<host>, !exec.buffer<host>
  exec.wait %11
  %12 = exec.start_all_reduce %x to %x as f32 count affine_map<() -> (16)> {group = 12 : i64}
    : !exec.buffer<host>, !exec.buffer<host>
  exec.wait %12
  %13 = exec.start_all_reduce %x to %x as f32 count affine_map<() -> (16)> {group = 13 : i64}
    : !exec.buffer<host>, !exec.buffer<host>
  exec.wait %13
  %14 = exec.start_all_reduce %x to %x as f32 count affine_map<() -> (16)> {group = 14 : i64}
    : !exec.buffer<host>, !exec.buffer<host>
  exec.wait %14
  %15 = exec.start_all_reduce %x to %x as f32 count affine_map<() -> (16)> {group = 15 : i64}
    : !exec.buffer<host>, !exec.buffer<host>
  exec.wait %15
}
