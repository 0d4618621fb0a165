// RUN: tcc-opt %s --tcc-split-loops --canonicalize | FileCheck %s

// Five places are walked over one after the other: the branches find a pointer, once for
// each, and the elements are read behind it.
// CHECK-LABEL: func @places
// CHECK-SAME:    (%[[FROM:.+]]: index, %[[TO:.+]]: index,
// CHECK:         %[[END:.+]]:2 = scf.while (%[[POS:.+]] = %[[FROM]], %[[SUM:.+]] = %{{.+}})
// CHECK:           %[[INSIDE:.+]] = arith.cmpi slt, %[[POS]], %[[TO]]
// CHECK:           scf.condition(%[[INSIDE]]) %[[POS]], %[[SUM]]
// CHECK:         ^bb0(%[[AT:.+]]: index, %[[CARRIED:.+]]: f32):
// CHECK:           %[[LOW:.+]] = arith.cmpi slt, %[[AT]], %[[CUT:.+]] : index
// CHECK:           %[[PLACE:.+]]:2 = scf.if %[[LOW]] -> (!llvm.ptr, index)
// CHECK:             arith.minsi %[[TO]], %[[CUT]]
// CHECK-NOT:       llvm.load
// CHECK:           %[[NEXT:.+]] = scf.for %[[I:.+]] = %[[AT]] to %[[PLACE]]#1 step %{{.+}} iter_args(%[[S:.+]] = %[[CARRIED]])
// CHECK-NOT:         scf.if
// CHECK:             %[[N:.+]] = arith.subi %[[I]], %[[AT]]
// CHECK:             %[[O:.+]] = arith.index_cast %[[N]]
// CHECK:             %[[P:.+]] = llvm.getelementptr %[[PLACE]]#0[%[[O]]]
// CHECK:             %[[X:.+]] = llvm.load %[[P]]
// CHECK:             arith.addf %[[S]], %[[X]]
// CHECK:           scf.yield %[[PLACE]]#1, %[[NEXT]]
// CHECK:         return %[[END]]#1
func.func @places(%from: index, %to: index, %p0: !llvm.ptr, %p1: !llvm.ptr, %p2: !llvm.ptr, %p3: !llvm.ptr,
                  %p4: !llvm.ptr, %row: index) -> f32 {
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %zero = arith.constant 0.0 : f32
  %s = scf.for %i = %from to %to step %c1 iter_args(%sum = %zero) -> f32 {
    %a = arith.cmpi slt, %i, %c16 : index
    %e = scf.if %a -> f32 {
      %b = arith.cmpi slt, %i, %c8 : index
      %f = scf.if %b -> f32 {
        %k = arith.addi %row, %i : index
        %j = arith.index_cast %k : index to i64
        %q = llvm.getelementptr %p0[%j] : (!llvm.ptr, i64) -> !llvm.ptr, f32
        %x = llvm.load %q : !llvm.ptr -> f32
        scf.yield %x : f32
      } else {
        %j = arith.index_cast %i : index to i64
        %q = llvm.getelementptr %p1[%j] : (!llvm.ptr, i64) -> !llvm.ptr, f32
        %x = llvm.load %q : !llvm.ptr -> f32
        scf.yield %x : f32
      }
      scf.yield %f : f32
    } else {
      %r = arith.subi %i, %c16 : index
      %b = arith.cmpi slt, %r, %c8 : index
      %f = scf.if %b -> f32 {
        %j = arith.index_cast %r : index to i64
        %q = llvm.getelementptr %p2[%j] : (!llvm.ptr, i64) -> !llvm.ptr, f32
        %x = llvm.load %q : !llvm.ptr -> f32
        scf.yield %x : f32
      } else {
        %t = arith.subi %r, %c8 : index
        %c = arith.cmpi slt, %t, %c8 : index
        %g = scf.if %c -> f32 {
          %j = arith.index_cast %t : index to i64
          %q = llvm.getelementptr %p3[%j] : (!llvm.ptr, i64) -> !llvm.ptr, f32
          %x = llvm.load %q : !llvm.ptr -> f32
          scf.yield %x : f32
        } else {
          %j = arith.index_cast %t : index to i64
          %q = llvm.getelementptr %p4[%j] : (!llvm.ptr, i64) -> !llvm.ptr, f32
          %x = llvm.load %q : !llvm.ptr -> f32
          scf.yield %x : f32
        }
        scf.yield %g : f32
      }
      scf.yield %f : f32
    }
    %next = arith.addf %sum, %e : f32
    scf.yield %next : f32
  }
  return %s : f32
}
