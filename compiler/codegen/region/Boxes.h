//===- Boxes.h - Scalars of non-maximum suppression -------------*- C++ -*-===//
#ifndef TCC_COMPILER_CODEGEN_REGION_BOXES_H
#define TCC_COMPILER_CODEGEN_REGION_BOXES_H

#include "compiler/codegen/region/KernelBuilder.h"
#include "compiler/codegen/region/RegionFrame.h"

namespace tcc::codegen {

/// Two low borders, two high ones, and the area: scalars or vectors.
struct Box {
  static constexpr int64_t kBorders = 4;
  Value parts[kBorders + 1];
};

/// A box of a batch.
Box emitBox(KernelBuilder &b, RegionFrame &frame, graph::ChooseBoxesOp op,
            Value batch, Value box);

/// Whether boxes overlap by more than `threshold` of what both cover.
Value emitOverlaps(KernelBuilder &b, const Box &x, const Box &y,
                   Value threshold);

/// An unsigned i64 above 0, larger for a larger score and, of equal ones, a
/// lower box. NaN counts as the largest, and the zeros as equal.
Value emitBoxKey(KernelBuilder &b, Value score, Value box);
/// The box of a key.
Value emitBoxOfKey(KernelBuilder &b, Value key);

/// How many boxes may be chosen of a batch and class.
Value emitBoxLimit(KernelBuilder &b, RegionFrame &frame,
                   graph::ChooseBoxesOp op);

} // namespace tcc::codegen

#endif // TCC_COMPILER_CODEGEN_REGION_BOXES_H
