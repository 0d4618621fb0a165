//===- Kernels.h - Device kernels written by hand ---------------*- C++ -*-===//
#ifndef TCC_TESTS_COMPILER_CODEGEN_CUDA_KERNELS_H
#define TCC_TESTS_COMPILER_CODEGEN_CUDA_KERNELS_H

#include <string>

namespace tcc {

/// y[i] = bf16(exp(x[i])) of bf16, eight neighbours a thread, 64 threads.
inline constexpr char kExpKernel[] = R"(
gpu.module @kernels {
gpu.func @round_exp(%x: !llvm.ptr {llvm.noalias, llvm.align = 16 : i64},
    %y: !llvm.ptr {llvm.noalias, llvm.align = 16 : i64}, %size: i64) kernel
    attributes {known_block_size = array<i32: 64, 1, 1>} {
  %c64 = arith.constant 64 : index
  %c8 = arith.constant 8 : index
  %thread = gpu.thread_id x
  %block = gpu.block_id x
  %0 = arith.muli %block, %c64 overflow<nsw, nuw> : index
  %1 = arith.addi %0, %thread overflow<nsw, nuw> : index
  %2 = arith.muli %1, %c8 overflow<nsw, nuw> : index
  %first = arith.index_cast %2 : index to i64
  %isInside = arith.cmpi slt, %first, %size : i64
  scf.if %isInside {
    %px = llvm.getelementptr %x[%first] : (!llvm.ptr, i64) -> !llvm.ptr, bf16
    %py = llvm.getelementptr %y[%first] : (!llvm.ptr, i64) -> !llvm.ptr, bf16
    %v = llvm.load %px {alignment = 16 : i64} : !llvm.ptr -> vector<8xbf16>
    %start = arith.constant dense<0.0> : vector<8xbf16>
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %w = scf.for %i = %c0 to %c8 step %c1 iter_args(%r = %start)
        -> vector<8xbf16> {
      %e = vector.extractelement %v[%i : index] : vector<8xbf16>
      %f = arith.extf %e : bf16 to f32
      %g = math.exp %f : f32
      %h = arith.truncf %g : f32 to bf16
      %n = vector.insertelement %h, %r[%i : index] : vector<8xbf16>
      scf.yield %n : vector<8xbf16>
    }
    llvm.store %w, %py {alignment = 16 : i64} : vector<8xbf16>, !llvm.ptr
  }
  gpu.return
}})";

/// y[block] = sum over x[block, :] of f32, 128 threads. A thread sums every
/// 128th element, a warp by shuffles, the first warp what the warps have.
/// MARKER is the barrier between the last two.
inline constexpr char kSumKernel[] = R"(
gpu.module @kernels {
llvm.mlir.global internal @sum_shared() {addr_space = 3 : i32,
    alignment = 16 : i64} : !llvm.array<16 x i8>
gpu.func @sum(%x: !llvm.ptr {llvm.noalias}, %y: !llvm.ptr {llvm.noalias},
              %size: i64) kernel
    attributes {known_block_size = array<i32: 128, 1, 1>} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c32 = arith.constant 32 : index
  %c128 = arith.constant 128 : index
  %zero = arith.constant 0.0 : f32
  %w32 = arith.constant 32 : i32
  %thread = gpu.thread_id x
  %block = gpu.block_id x
  %columns = arith.index_cast %size : i64 to index
  %lane = arith.remui %thread, %c32 : index
  %warp = arith.divui %thread, %c32 : index
  %row = arith.muli %block, %columns : index
  %own = scf.for %i = %thread to %columns step %c128 iter_args(%s = %zero)
      -> f32 {
    %at = arith.addi %row, %i : index
    %j = arith.index_cast %at : index to i64
    %p = llvm.getelementptr %x[%j] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %v = llvm.load %p : !llvm.ptr -> f32
    %n = arith.addf %s, %v : f32
    scf.yield %n : f32
  }
  %o16 = arith.constant 16 : i32
  %o8 = arith.constant 8 : i32
  %o4 = arith.constant 4 : i32
  %o2 = arith.constant 2 : i32
  %o1 = arith.constant 1 : i32
  %s16, %v16 = gpu.shuffle xor %own, %o16, %w32 : f32
  %a16 = arith.addf %own, %s16 : f32
  %s8, %v8 = gpu.shuffle xor %a16, %o8, %w32 : f32
  %a8 = arith.addf %a16, %s8 : f32
  %s4, %v4 = gpu.shuffle xor %a8, %o4, %w32 : f32
  %a4 = arith.addf %a8, %s4 : f32
  %s2, %v2 = gpu.shuffle xor %a4, %o2, %w32 : f32
  %a2 = arith.addf %a4, %s2 : f32
  %s1, %v1 = gpu.shuffle xor %a2, %o1, %w32 : f32
  %a1 = arith.addf %a2, %s1 : f32
  %shared = llvm.mlir.addressof @sum_shared : !llvm.ptr<3>
  %isFirst = arith.cmpi eq, %lane, %c0 : index
  scf.if %isFirst {
    %w = arith.index_cast %warp : index to i64
    %p = llvm.getelementptr %shared[%w] : (!llvm.ptr<3>, i64) -> !llvm.ptr<3>, f32
    llvm.store %a1, %p : f32, !llvm.ptr<3>
  }
  MARKER
  %isLeader = arith.cmpi eq, %thread, %c0 : index
  scf.if %isLeader {
    %c1 = arith.constant 1 : index
    %total = scf.for %i = %c0 to %c4 step %c1 iter_args(%s = %zero) -> f32 {
      %j = arith.index_cast %i : index to i64
      %p = llvm.getelementptr %shared[%j] : (!llvm.ptr<3>, i64) -> !llvm.ptr<3>, f32
      %v = llvm.load %p : !llvm.ptr<3> -> f32
      %n = arith.addf %s, %v : f32
      scf.yield %n : f32
    }
    %b = arith.index_cast %block : index to i64
    %p = llvm.getelementptr %y[%b] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    llvm.store %total, %p : f32, !llvm.ptr
  }
  gpu.return
}})";

/// Each block transposes 4 tiles of 32 x 32, one after the other, through the
/// same shared memory, 33 floats a row: y[t, j, i] = x[t, i, j]. 256 threads.
/// WRITTEN and READ are the barriers after the tile is written and read.
inline constexpr char kTransposeKernel[] = R"(
gpu.module @kernels {
llvm.mlir.global internal @transpose_shared() {addr_space = 3 : i32,
    alignment = 16 : i64} : !llvm.array<4224 x i8>
gpu.func @transpose(%x: !llvm.ptr {llvm.noalias}, %y: !llvm.ptr {llvm.noalias})
    kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c32 = arith.constant 32 : index
  %c33 = arith.constant 33 : index
  %c256 = arith.constant 256 : index
  %c1024 = arith.constant 1024 : index
  %thread = gpu.thread_id x
  %block = gpu.block_id x
  %shared = llvm.mlir.addressof @transpose_shared : !llvm.ptr<3>
  scf.for %k = %c0 to %c4 step %c1 {
    %0 = arith.muli %block, %c4 : index
    %1 = arith.addi %0, %k : index
    %tile = arith.muli %1, %c1024 : index
    scf.for %e = %thread to %c1024 step %c256 {
      %at = arith.addi %tile, %e : index
      %j = arith.index_cast %at : index to i64
      %p = llvm.getelementptr %x[%j] : (!llvm.ptr, i64) -> !llvm.ptr, f32
      %v = llvm.load %p : !llvm.ptr -> f32
      %r = arith.divui %e, %c32 : index
      %c = arith.remui %e, %c32 : index
      %2 = arith.muli %r, %c33 : index
      %3 = arith.addi %2, %c : index
      %s = arith.index_cast %3 : index to i64
      %q = llvm.getelementptr %shared[%s] : (!llvm.ptr<3>, i64) -> !llvm.ptr<3>, f32
      llvm.store %v, %q : f32, !llvm.ptr<3>
    }
    WRITTEN
    scf.for %e = %thread to %c1024 step %c256 {
      %r = arith.divui %e, %c32 : index
      %c = arith.remui %e, %c32 : index
      %2 = arith.muli %c, %c33 : index
      %3 = arith.addi %2, %r : index
      %s = arith.index_cast %3 : index to i64
      %q = llvm.getelementptr %shared[%s] : (!llvm.ptr<3>, i64) -> !llvm.ptr<3>, f32
      %v = llvm.load %q : !llvm.ptr<3> -> f32
      %at = arith.addi %tile, %e : index
      %j = arith.index_cast %at : index to i64
      %p = llvm.getelementptr %y[%j] : (!llvm.ptr, i64) -> !llvm.ptr, f32
      llvm.store %v, %p : f32, !llvm.ptr
    }
    READ
  }
  gpu.return
}})";

/// `source` with `marker` replaced by `text`.
inline std::string substitute(std::string source, const std::string &marker,
                              const std::string &text) {
  return source.replace(source.find(marker), marker.size(), text);
}

} // namespace tcc

#endif // TCC_TESTS_COMPILER_CODEGEN_CUDA_KERNELS_H
