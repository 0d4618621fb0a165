// RUN: tcc-opt %s --tcc-split-loops | FileCheck %s

// The three operands of a concatenation are read in loops of their own.
// CHECK-LABEL: func @concat
// CHECK-SAME:    (%[[FROM:.+]]: index, %[[TO:.+]]: index,
// CHECK:         %[[A:.+]] = arith.minsi %{{.+}}, %[[TO]]
// CHECK:         %[[B:.+]] = arith.maxsi %[[A]], %[[FROM]]
// CHECK:         scf.for %{{.+}} = %[[FROM]] to %[[B]] step
// CHECK-NOT:       scf.if
// CHECK:           memref.load %[[X:.+]][
// CHECK:         %[[C:.+]] = arith.maxsi %{{.+}}, %[[B]]
// CHECK:         scf.for %{{.+}} = %[[B]] to %[[C]] step
// CHECK-NOT:       scf.if
// CHECK:         scf.for %{{.+}} = %[[C]] to %[[TO]] step
// CHECK-NOT:       scf.if
// CHECK:         return
func.func @concat(%from: index, %to: index, %x: memref<?xf32>,
                  %y: memref<?xf32>, %z: memref<?xf32>, %r: memref<?xf32>) {
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  scf.for %i = %from to %to step %c1 {
    %k = arith.addi %c16, %i : index
    %left = arith.cmpi slt, %k, %c8 : index
    %e = scf.if %left -> f32 {
      %a = memref.load %x[%i] : memref<?xf32>
      scf.yield %a : f32
    } else {
      %j = arith.subi %k, %c8 : index
      %middle = arith.cmpi slt, %j, %c8 : index
      %f = scf.if %middle -> f32 {
        %a = memref.load %y[%i] : memref<?xf32>
        scf.yield %a : f32
      } else {
        %a = memref.load %z[%i] : memref<?xf32>
        scf.yield %a : f32
      }
      scf.yield %f : f32
    }
    memref.store %e, %r[%i] : memref<?xf32>
  }
  return
}

// What a loop carries goes through both.
// CHECK-LABEL: func @sum
// CHECK:         %[[S:.+]] = scf.for {{.*}} iter_args(%{{.+}} = %{{.+}})
// CHECK:         %[[T:.+]] = scf.for {{.*}} iter_args(%{{.+}} = %[[S]])
// CHECK:         return %[[T]]
func.func @sum(%n: index, %x: memref<?xf32>, %y: memref<?xf32>) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  %s = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> f32 {
    %left = arith.cmpi slt, %i, %c8 : index
    %e = scf.if %left -> f32 {
      %a = memref.load %x[%i] : memref<?xf32>
      scf.yield %a : f32
    } else {
      %a = memref.load %y[%i] : memref<?xf32>
      scf.yield %a : f32
    }
    %next = arith.addf %sum, %e : f32
    scf.yield %next : f32
  }
  return %s : f32
}

// The bound moves with the loop: the branch stays.
// CHECK-LABEL: func @moving_bound
// CHECK-COUNT-1: scf.for
// CHECK:         scf.if
func.func @moving_bound(%n: index, %x: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  scf.for %i = %c0 to %n step %c1 {
    %twice = arith.addi %i, %i : index
    %left = arith.cmpi slt, %twice, %n : index
    scf.if %left {
      memref.store %zero, %x[%i] : memref<?xf32>
    }
  }
  return
}
