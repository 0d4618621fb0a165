// RUN: tcc-opt %s --split-input-file --verify-diagnostics | FileCheck %s
// A loop counts in a slot of its own, which its body may read.

// CHECK-LABEL: exec.entry @main
exec.entry @main inputs [#exec.tensor<"f", tensor<i1>>] outputs []
    attributes {slots = 2 : i64} {
  %f = exec.buffer input 0 bytes affine_map<() -> (1)> bound 1 : !exec.buffer<host>
  // CHECK: exec.if %{{.*}} : !exec.buffer<host> {
  exec.if %f : !exec.buffer<host> {
  // CHECK: } else {
  } else {
  }
  // CHECK: exec.loop 0 trips {{.*}} while %{{.*}} max 3 node "/loop"
  exec.loop 0 trips affine_map<() -> (3)> while %f : !exec.buffer<host> max 3 node "/loop" {
    exec.set_size 1 to affine_map<()[s0] -> (s0 * 2)>
  }
}

// -----

exec.entry @main inputs [#exec.tensor<"f", tensor<i1>>] outputs []
    attributes {slots = 1 : i64} {
  %f = exec.buffer input 0 bytes affine_map<() -> (1)> bound 1 : !exec.buffer<host>
  // expected-error @+1 {{runs collectives as often as its data says}}
  exec.loop 0 while %f : !exec.buffer<host> max 9 node "/loop" {
    %0 = exec.start_all_reduce %f to %f as i8 count affine_map<() -> (1)>
      : !exec.buffer<host>, !exec.buffer<host>
    exec.wait %0
  }
}
