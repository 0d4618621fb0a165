// RUN: tcc-opt %s --tcc-phase-fuse --tcc-phase-lower --tcc-phase-plan | FileCheck %s
// A sum over ranks is beside what needs it not, on a lane of its own, in bytes that
// are not used again before it is waited for.

// CHECK-LABEL: exec.entry @main
// CHECK-SAME:    lanes = 2
// CHECK:         exec.launch {{.*}} node "stem"
// CHECK-NEXT:    %[[E:.+]] = exec.record_event
// CHECK-NEXT:    exec.wait %[[E]] {lane = 1 : i64}
// CHECK-NEXT:    %[[T:.+]] = exec.start_all_reduce {{.*}} {lane = 1 : i64}
// CHECK-NEXT:    exec.launch {{.*}} node "beside"
// CHECK-NEXT:    exec.wait %[[T]]{{$}}
// CHECK-NEXT:    exec.launch {{.*}} node "head"
func.func @main(%x: tensor<64x64xf32> {graph.name = "x"})
    -> (tensor<64xf32> {graph.name = "y"}, tensor<64xf32> {graph.name = "z"}) {
  %0 = graph.reduce <sum> %x [0] : (tensor<64x64xf32>) -> tensor<64xf32> loc("stem")
  %1 = graph.all_reduce %0 : tensor<64xf32> loc("sum")
  %2 = graph.reduce <max> %x [1] : (tensor<64x64xf32>) -> tensor<64xf32> loc("beside")
  %3 = graph.exp %1 : (tensor<64xf32>) -> tensor<64xf32> loc("head")
  return %3, %2 : tensor<64xf32>, tensor<64xf32>
}
