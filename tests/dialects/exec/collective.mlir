// RUN: tcc-opt %s --split-input-file --verify-diagnostics | FileCheck %s
// Ranks sum, scatter, gather and broadcast buffers, beside other commands.

// CHECK-LABEL: exec.entry @main
exec.entry @main inputs [#exec.tensor<"x", tensor<8xf32>>] outputs []
    attributes {slots = 0 : i64} {
  %x = exec.buffer input 0 bytes affine_map<() -> (32)> bound 32 : !exec.buffer<host>
  %y = exec.buffer scratch bytes affine_map<() -> (32)> bound 32 : !exec.buffer<host>
  %z = exec.buffer scratch bytes affine_map<() -> (16)> bound 16 : !exec.buffer<host>
  // CHECK: %[[SUM:.+]] = exec.start_all_reduce %{{.*}} to %{{.*}} as f32 count
  %sum = exec.start_all_reduce %x to %y as f32 count affine_map<() -> (8)>
    : !exec.buffer<host>, !exec.buffer<host>
  // CHECK-NEXT: exec.wait %[[SUM]]
  exec.wait %sum
  // CHECK-NEXT: exec.start_reduce_scatter %{{.*}} to %{{.*}} {group = 1 : i64}
  %part = exec.start_reduce_scatter %y to %z as f32 count affine_map<() -> (4)>
    {group = 1 : i64} : !exec.buffer<host>, !exec.buffer<host>
  exec.wait %part
  // CHECK: exec.start_all_gather
  %whole = exec.start_all_gather %z to %y as f32 count affine_map<() -> (4)>
    {group = 1 : i64} : !exec.buffer<host>, !exec.buffer<host>
  exec.wait %whole
  // CHECK: exec.start_broadcast %{{.*}} to %{{.*}} {root = 1 : i64}
  %given = exec.start_broadcast %y to %y as f32 count affine_map<() -> (8)>
    {root = 1 : i64} : !exec.buffer<host>, !exec.buffer<host>
  exec.wait %given
}

// -----

exec.entry @main inputs [#exec.tensor<"x", tensor<8xf32>>] outputs []
    attributes {slots = 0 : i64} {
  %x = exec.buffer input 0 bytes affine_map<() -> (32)> bound 32 : !exec.buffer<host>
  // expected-error @+1 {{expected one number of elements}}
  %sum = exec.start_all_reduce %x to %x as f32 count affine_map<() -> (8, 8)>
    : !exec.buffer<host>, !exec.buffer<host>
  exec.wait %sum
}

// -----

exec.entry @main inputs [#exec.tensor<"x", tensor<8xf32>>] outputs []
    attributes {slots = 0 : i64} {
  %x = exec.buffer input 0 bytes affine_map<() -> (32)> bound 32 : !exec.buffer<host>
  // expected-error @+2 {{attribute 'group' failed to satisfy constraint: 64-bit signless integer attribute whose value is non-negative}}
  %sum = exec.start_all_gather %x to %x as f32 count affine_map<() -> (8)>
    {group = -1 : i64} : !exec.buffer<host>, !exec.buffer<host>
  exec.wait %sum
}

// -----

exec.entry @main inputs [#exec.tensor<"x", tensor<8xf32>>] outputs []
    attributes {slots = 0 : i64} {
  %x = exec.buffer input 0 bytes affine_map<() -> (32)> bound 32 : !exec.buffer<host>
  // expected-error @+2 {{attribute 'root' failed to satisfy constraint: 64-bit signless integer attribute whose value is non-negative}}
  %sum = exec.start_broadcast %x to %x as f32 count affine_map<() -> (8)>
    {root = -1 : i64} : !exec.buffer<host>, !exec.buffer<host>
  exec.wait %sum
}
