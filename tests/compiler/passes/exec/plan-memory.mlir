// RUN: tcc-opt %s --tcc-plan-memory | FileCheck %s

#size = affine_map<() -> (128)>
// Buffers that do not live together share bytes; what nothing uses is gone.
// CHECK: exec.entry @main
// CHECK-SAME: scratch_bound = 256
// CHECK-SAME: scratch_bytes = 256
// CHECK: exec.buffer scratch bytes #{{.+}} bound 128 offset 0
// CHECK-NEXT: exec.buffer scratch bytes #{{.+}} bound 128 offset 128
// CHECK-NEXT: exec.buffer scratch bytes #{{.+}} bound 128 offset 0
// CHECK-NOT: exec.buffer scratch
exec.entry @main inputs [#exec.tensor<"x", tensor<32xf32>>]
    outputs [#exec.tensor<"y", tensor<32xf32>>] attributes {slots = 0 : i64} {
  %x = exec.buffer input 0 bytes #size bound 128 : !exec.buffer<host>
  %y = exec.buffer output 0 bytes #size bound 128 : !exec.buffer<host>
  %a = exec.buffer scratch bytes #size bound 128 : !exec.buffer<host>
  %b = exec.buffer scratch bytes #size bound 128 : !exec.buffer<host>
  %c = exec.buffer scratch bytes #size bound 128 : !exec.buffer<host>
  %d = exec.buffer scratch bytes #size bound 128 : !exec.buffer<host>
  exec.copy %x to %a bytes #size : !exec.buffer<host>, !exec.buffer<host>
  exec.copy %a to %b bytes #size : !exec.buffer<host>, !exec.buffer<host>
  exec.copy %b to %c bytes #size : !exec.buffer<host>, !exec.buffer<host>
  exec.copy %c to %y bytes #size : !exec.buffer<host>, !exec.buffer<host>
}
