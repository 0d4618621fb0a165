// RUN: tcc-opt %s --tcc-phase-fuse --tcc-phase-lower --tcc-phase-plan | FileCheck %s
// A sum over ranks is beside what needs it not, on a lane of its own, in bytes that
// are not used again before it is waited for.

// CHECK-LABEL: exec.entry @main
// CHECK-SAME:    lanes = 2
// CHECK-SAME:    scratch_bytes = 16640
// CHECK:         %[[FIRST:.+]] = exec.buffer scratch {{.*}} bound 16384 offset 0 :
// CHECK:         %[[STEM:.+]] = exec.buffer scratch {{.*}} bound 256 offset 16384 :
// CHECK:         %[[BESIDE:.+]] = exec.buffer scratch {{.*}} bound 8192 offset 0 :
// CHECK:         exec.launch {{.*}} outs(%[[FIRST]]) {{.*}} node "first"
// CHECK-NEXT:    exec.launch {{.*}} ins(%[[FIRST]]) outs(%[[STEM]]) {{.*}} node "stem"
// CHECK-NEXT:    %[[E:.+]] = exec.record_event
// CHECK-NEXT:    exec.wait %[[E]] {lane = 1 : i64}
// CHECK-NEXT:    %[[T:.+]] = exec.start_all_reduce %[[STEM]] to {{.*}} {lane = 1 : i64, node = "sum"}
// CHECK-NEXT:    exec.launch {{.*}} outs(%[[BESIDE]]) {{.*}} node "beside"
// CHECK-NEXT:    exec.launch {{.*}} ins(%[[BESIDE]]) {{.*}} node "also"
// CHECK-NEXT:    exec.wait %[[T]]{{$}}
// CHECK-NEXT:    exec.launch {{.*}} node "head"
func.func @main(%x: tensor<64x64xf32> {graph.name = "x"}, %u: tensor<32x64xf32> {graph.name = "u"})
    -> (tensor<64xf32> {graph.name = "y"}, tensor<64xf32> {graph.name = "z"}) {
  %0 = graph.matmul %x, %x : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> loc("first")
  %1 = graph.reduce <sum> %0 [0] : (tensor<64x64xf32>) -> tensor<64xf32> loc("stem")
  %2 = graph.all_reduce %1 : tensor<64xf32> loc("sum")
  %3 = graph.matmul %u, %x : (tensor<32x64xf32>, tensor<64x64xf32>) -> tensor<32x64xf32> loc("beside")
  %4 = graph.reduce <max> %3 [0] : (tensor<32x64xf32>) -> tensor<64xf32> loc("also")
  %5 = graph.exp %2 : (tensor<64xf32>) -> tensor<64xf32> loc("head")
  return %5, %4 : tensor<64xf32>, tensor<64xf32>
}
