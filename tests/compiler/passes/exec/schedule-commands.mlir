// RUN: tcc-opt %s --tcc-schedule-commands | FileCheck %s

#size = affine_map<() -> (64)>
// Two temporaries are not live at once if each is used up first.
// CHECK: exec.copy %[[X:.+]] to %[[A:.+]] bytes
// CHECK-NEXT: exec.copy %[[A]] to %{{.+}} bytes
// CHECK-NEXT: exec.copy %[[X]] to %[[B:.+]] bytes
// CHECK-NEXT: exec.copy %[[B]] to %{{.+}} bytes
exec.entry @main inputs [#exec.tensor<"x", tensor<16xf32>>]
    outputs [#exec.tensor<"y", tensor<16xf32>>,
             #exec.tensor<"z", tensor<16xf32>>] attributes {slots = 0 : i64} {
  %x = exec.buffer input 0 bytes #size bound 64 : !exec.buffer<host>
  %y = exec.buffer output 0 bytes #size bound 64 : !exec.buffer<host>
  %z = exec.buffer output 1 bytes #size bound 64 : !exec.buffer<host>
  %a = exec.buffer scratch bytes #size bound 64 : !exec.buffer<host>
  %b = exec.buffer scratch bytes #size bound 64 : !exec.buffer<host>
  exec.copy %x to %a bytes #size : !exec.buffer<host>, !exec.buffer<host>
  exec.copy %x to %b bytes #size : !exec.buffer<host>, !exec.buffer<host>
  exec.copy %a to %y bytes #size : !exec.buffer<host>, !exec.buffer<host>
  exec.copy %b to %z bytes #size : !exec.buffer<host>, !exec.buffer<host>
}
