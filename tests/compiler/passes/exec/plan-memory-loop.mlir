// RUN: tcc-opt %s --tcc-plan-memory | FileCheck %s

#size = affine_map<() -> (64)>
// What lies outside a loop and is read in it lives until the loop ends; what
// lies inside lives within an iteration.
// CHECK: exec.entry @main
// CHECK-SAME: scratch_bytes = 192
// CHECK: exec.buffer scratch bytes #{{.+}} bound 64 offset 0
// CHECK: exec.loop
// CHECK-NEXT: exec.buffer scratch bytes #{{.+}} bound 64 offset 64
// CHECK-NEXT: exec.buffer scratch bytes #{{.+}} bound 64 offset 128
// CHECK-NEXT: exec.buffer scratch bytes #{{.+}} bound 64 offset 64
exec.entry @main inputs [#exec.tensor<"x", tensor<16xf32>>]
    outputs [#exec.tensor<"y", tensor<16xf32>>] attributes {slots = 1 : i64} {
  %x = exec.buffer input 0 bytes #size bound 64 : !exec.buffer<host>
  %y = exec.buffer output 0 bytes #size bound 64 : !exec.buffer<host>
  %a = exec.buffer scratch bytes #size bound 64 : !exec.buffer<host>
  exec.copy %x to %a bytes #size : !exec.buffer<host>, !exec.buffer<host>
  exec.loop 0 trips affine_map<() -> (3)> max 3 node "loop" {
    %b = exec.buffer scratch bytes #size bound 64 : !exec.buffer<host>
    %c = exec.buffer scratch bytes #size bound 64 : !exec.buffer<host>
    %d = exec.buffer scratch bytes #size bound 64 : !exec.buffer<host>
    exec.copy %a to %b bytes #size : !exec.buffer<host>, !exec.buffer<host>
    exec.copy %b to %c bytes #size : !exec.buffer<host>, !exec.buffer<host>
    exec.copy %c to %d bytes #size : !exec.buffer<host>, !exec.buffer<host>
    exec.copy %d to %y bytes #size : !exec.buffer<host>, !exec.buffer<host>
  }
}
