// RUN: tcc-opt %s --tcc-split-loops --canonicalize | FileCheck %s

// Four places have four loops.
// CHECK-LABEL: func @few
// CHECK-NOT:     scf.while
// CHECK-COUNT-4: scf.for
// CHECK:         return
func.func @few(%n: index, %p0: !llvm.ptr, %p1: !llvm.ptr, %p2: !llvm.ptr, %p3: !llvm.ptr, %out: !llvm.ptr) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %n step %c1 {
      %c0_0 = arith.cmpi slt, %i, %c8 : index
      %v0_0 = scf.if %c0_0 -> f32 {
        %j = arith.index_cast %i : index to i64
        %q = llvm.getelementptr %p0[%j] : (!llvm.ptr, i64) -> !llvm.ptr, f32
        %x = llvm.load %q : !llvm.ptr -> f32
        scf.yield %x : f32
      } else {
        %r0 = arith.subi %i, %c8 : index
      %c1_1 = arith.cmpi slt, %r0, %c8 : index
      %v1_1 = scf.if %c1_1 -> f32 {
        %j = arith.index_cast %r0 : index to i64
        %q = llvm.getelementptr %p1[%j] : (!llvm.ptr, i64) -> !llvm.ptr, f32
        %x = llvm.load %q : !llvm.ptr -> f32
        scf.yield %x : f32
      } else {
        %r1 = arith.subi %r0, %c8 : index
      %c2_2 = arith.cmpi slt, %r1, %c8 : index
      %v2_2 = scf.if %c2_2 -> f32 {
        %j = arith.index_cast %r1 : index to i64
        %q = llvm.getelementptr %p2[%j] : (!llvm.ptr, i64) -> !llvm.ptr, f32
        %x = llvm.load %q : !llvm.ptr -> f32
        scf.yield %x : f32
      } else {
        %r2 = arith.subi %r1, %c8 : index
        %j = arith.index_cast %r2 : index to i64
        %q = llvm.getelementptr %p3[%j] : (!llvm.ptr, i64) -> !llvm.ptr, f32
        %x = llvm.load %q : !llvm.ptr -> f32
        scf.yield %x : f32
      }
      scf.yield %v2_2 : f32
      }
      scf.yield %v1_1 : f32
      }
    %k = arith.index_cast %i : index to i64
    %o = llvm.getelementptr %out[%k] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    llvm.store %v0_0, %o : f32, !llvm.ptr
  }
  return
}

// The elements of one place are not adjacent.
// CHECK-LABEL: func @apart
// CHECK-NOT:     scf.while
// CHECK:         return
func.func @apart(%n: index, %p0: !llvm.ptr, %p1: !llvm.ptr, %p2: !llvm.ptr, %p3: !llvm.ptr, %p4: !llvm.ptr, %out: !llvm.ptr) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %n step %c1 {
      %c0_0 = arith.cmpi slt, %i, %c8 : index
      %v0_0 = scf.if %c0_0 -> f32 {
        %j = arith.index_cast %i : index to i64
        %q = llvm.getelementptr %p0[%j] : (!llvm.ptr, i64) -> !llvm.ptr, f32
        %x = llvm.load %q : !llvm.ptr -> f32
        scf.yield %x : f32
      } else {
        %r0 = arith.subi %i, %c8 : index
      %c1_1 = arith.cmpi slt, %r0, %c8 : index
      %v1_1 = scf.if %c1_1 -> f32 {
        %m = arith.muli %r0, %c8 : index
        %j = arith.index_cast %m : index to i64
        %q = llvm.getelementptr %p1[%j] : (!llvm.ptr, i64) -> !llvm.ptr, f32
        %x = llvm.load %q : !llvm.ptr -> f32
        scf.yield %x : f32
      } else {
        %r1 = arith.subi %r0, %c8 : index
      %c2_2 = arith.cmpi slt, %r1, %c8 : index
      %v2_2 = scf.if %c2_2 -> f32 {
        %j = arith.index_cast %r1 : index to i64
        %q = llvm.getelementptr %p2[%j] : (!llvm.ptr, i64) -> !llvm.ptr, f32
        %x = llvm.load %q : !llvm.ptr -> f32
        scf.yield %x : f32
      } else {
        %r2 = arith.subi %r1, %c8 : index
      %c3_3 = arith.cmpi slt, %r2, %c8 : index
      %v3_3 = scf.if %c3_3 -> f32 {
        %j = arith.index_cast %r2 : index to i64
        %q = llvm.getelementptr %p3[%j] : (!llvm.ptr, i64) -> !llvm.ptr, f32
        %x = llvm.load %q : !llvm.ptr -> f32
        scf.yield %x : f32
      } else {
        %r3 = arith.subi %r2, %c8 : index
        %j = arith.index_cast %r3 : index to i64
        %q = llvm.getelementptr %p4[%j] : (!llvm.ptr, i64) -> !llvm.ptr, f32
        %x = llvm.load %q : !llvm.ptr -> f32
        scf.yield %x : f32
      }
      scf.yield %v3_3 : f32
      }
      scf.yield %v2_2 : f32
      }
      scf.yield %v1_1 : f32
      }
    %k = arith.index_cast %i : index to i64
    %o = llvm.getelementptr %out[%k] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    llvm.store %v0_0, %o : f32, !llvm.ptr
  }
  return
}
