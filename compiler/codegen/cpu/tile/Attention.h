//===- Attention.h - Generates attention kernels ----------------*- C++ -*-===//
//
// out[batch, i, :] = epilogue(softmax over j of score(query[batch, i, :] .
//                             key[batch, j, :]) times value[batch, j, :])
//
// A task packs the keys and values of its batch once and takes its queries a
// few rows at a time: their scores are all that is kept of the product of
// queries and keys. Sums are chains over d and over j; the sum of a row's
// exponentials runs in 16 lanes, whatever the CPU.
//
// Matrices of bf16 are multiplied in units (PackedUnit.h). The exponentials are
// rounded to bf16 for that once they are summed.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_CODEGEN_CPU_TILE_ATTENTION_H
#define TCC_COMPILER_CODEGEN_CPU_TILE_ATTENTION_H

#include "compiler/codegen/cpu/tile/Contraction.h"

namespace tcc::cpu {

using codegen::KernelBuilder;
using codegen::Memory;
using mlir::Value;
using mlir::ValueRange;

/// Sizes of an attention: constants, or upper bounds.
struct AttentionSizes {
  std::optional<int64_t> batch; // if it is constant
  int64_t queries, keys, depth, columns;
  Packing packing = {}; // of what is multiplied

  int64_t getUnits(int64_t elements) const {
    return packing.getDepth(elements) / packing.group;
  }
};

/// Rows of a task, and how many of them have their scores at once.
struct AttentionBlocking {
  int64_t taskRows, rows;
};
AttentionBlocking chooseAttentionBlocking(const AttentionSizes &sizes);

struct Attention {
  Value batch, queries, keys, depth, columns;
  AttentionSizes bounds; // upper ones
  /// Lanes are queries, keys and columns of values; the last two are packed.
  /// Their k are counted in units.
  MatrixOperand query, key, value;
  Arithmetic arithmetic;
  /// The score that the product of query i and key j gives.
  std::function<Value(KernelBuilder &, Value product, Value batch, Value i,
                      Value j)>
      score;
  EpilogueFunction epilogue;
  bool guard = false; // rows whose weights are NaN give zeros
  VectorUnit unit;
  Value registerRows = {}; // of Contraction; emitAttention says
};

/// Bytes of scratch that a worker needs.
int64_t attentionScratchBytes(const AttentionSizes &bounds, mlir::Type sum,
                              mlir::Type query, mlir::Type key,
                              mlir::Type value);

/// Emits tasks [firstTask, lastTask), `taskRows` queries of a batch each.
void emitAttention(KernelBuilder &b, const Attention &attention,
                   Value firstTask, Value lastTask, Value scratch);

} // namespace tcc::cpu

#endif // TCC_COMPILER_CODEGEN_CPU_TILE_ATTENTION_H
