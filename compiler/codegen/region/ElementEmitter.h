//===- ElementEmitter.h - Pulls elements through a region -------*- C++ -*-===//
//
// The element of a tensor is what its op computes from the elements of the
// operands, down to loads from buffers. An element at given indices is emitted
// once in each block that needs it, outside of all loops that it does not
// depend on.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_CODEGEN_REGION_ELEMENTEMITTER_H
#define TCC_COMPILER_CODEGEN_REGION_ELEMENTEMITTER_H

#include "compiler/codegen/region/Buffer.h"
#include "dialects/graph/GraphOps.h"
#include "llvm/ADT/DenseMap.h"
#include <functional>
#include <map>

namespace tcc::codegen {

/// What rounds f32 to bf16: operations on its bits; `arith`, for a target with
/// an instruction, whose emulation has none; or LLVM, for such a host. LLVM's
/// flushes denormals, as that host's products do.
enum class Bf16Rounding { integers, arith, llvm };

class ElementEmitter : public graph::ElementSource {
public:
  /// The i64 value of the symbol at a place among those used.
  using SizeSource = std::function<Value(mlir::OpBuilder &, unsigned place)>;

  /// `fault` may be null. Sizes are computed before `anchor`, which stands
  /// outside of all loops.
  ElementEmitter(mlir::Operation *anchor, llvm::ArrayRef<unsigned> usedSymbols,
                 SizeSource symbolValue, Buffer fault);

  /// Elements of `tensor` lie in `buffer`.
  void bind(Value tensor, Buffer buffer) { buffers[tensor] = buffer; }
  void roundToBf16By(Bf16Rounding way) { rounding = way; }
  /// Rounds `x`, as emitRounding.
  Value round(mlir::OpBuilder &b, mlir::Location loc, Value x,
              mlir::Type elementType);

  void bindInputs(graph::FusedOp region, llvm::ArrayRef<Buffer> inputs);
  Buffer getBuffer(Value tensor) const { return buffers.lookup(tensor); }

  /// Nothing is computed outside of `block`, where definitions that depend on
  /// no index become visible.
  void setOutermostBlock(mlir::Block *block) { outermost = block; }

  /// The element of `tensor` at `indices` is `scalar`, wherever that is
  /// visible.
  void define(Value tensor, ValueRange indices, Value scalar);

  Value element(mlir::OpBuilder &b, mlir::Location loc, Value tensor,
                ValueRange indices) override;
  Value size(mlir::OpBuilder &b, mlir::Location loc,
             mlir::AffineExpr expression) override;
  Value checkedIndex(mlir::OpBuilder &b, mlir::Location loc, Value index,
                     Value extent, bool wrapNegative) override;

  /// Stores the element of `tensor` at `indices` there in `buffer`.
  void storeElement(mlir::OpBuilder &b, mlir::Location loc, Value tensor,
                    ValueRange indices, const Buffer &buffer);

  /// The row-major position of `indices` in a tensor of `tensor`'s extents.
  Value position(mlir::OpBuilder &b, mlir::Location loc, Value tensor,
                 ValueRange indices);

  /// Memory of `count` elements on the stack.
  Buffer allocate(mlir::Location loc, mlir::Type elementType, int64_t count);

  /// True if something could not be emitted; the error is reported.
  bool hasFailed() const { return failed; }

private:
  using Key = std::pair<void *, llvm::SmallVector<unsigned, 6>>;

  Key getKey(Value tensor, ValueRange indices);
  unsigned number(Value index);
  unsigned addNumber(mlir::Block *root);
  mlir::OpBuilder hoist(mlir::OpBuilder &b, const Key &key);
  Value materialize(mlir::OpBuilder &b, Value index);
  Value lookup(const Key &key, mlir::Block *block) const;
  Value compute(mlir::OpBuilder &b, mlir::Location loc, Value tensor,
                ValueRange indices);
  Value computeByOp(mlir::OpBuilder &b, mlir::Location loc, Value tensor,
                    ValueRange indices);
  Value emitConstant(mlir::OpBuilder &b, mlir::Location loc,
                     graph::ConstantOp op, ValueRange indices);
  Value emitSize(mlir::OpBuilder &b, mlir::Location loc,
                 mlir::AffineExpr expression);
  Buffer createTable(mlir::Location loc, graph::ConstantOp op);

  mlir::Operation *anchor;
  mlir::Block *outermost;
  llvm::SmallVector<unsigned> usedSymbols;
  SizeSource symbolValue;
  Buffer fault;
  Bf16Rounding rounding = Bf16Rounding::integers;
  bool failed = false;

  llvm::DenseMap<Value, Buffer> buffers;
  llvm::DenseMap<mlir::AffineExpr, Value> knownSizes;
  std::map<Key, llvm::SmallVector<Value, 2>> elements;
  /// Equal indices have equal numbers, however often they are computed.
  llvm::DenseMap<Value, unsigned> numbers;
  using Expression =
      std::tuple<const void *, const void *, llvm::SmallVector<unsigned, 4>>;
  std::map<Expression, unsigned> expressions;
  /// The innermost block that each number depends on.
  llvm::SmallVector<mlir::Block *> roots;
};

/// Constants fold while index arithmetic is built.
Value emitIndex(mlir::OpBuilder &b, mlir::Location loc, int64_t value);
Value emitAdd(mlir::OpBuilder &b, mlir::Location loc, Value x, Value y);
Value emitSub(mlir::OpBuilder &b, mlir::Location loc, Value x, Value y);
Value emitMul(mlir::OpBuilder &b, mlir::Location loc, Value x, Value y);
Value emitMin(mlir::OpBuilder &b, mlir::Location loc, Value x, Value y);

/// Splits a row-major `position` into an index for each of `sizes`.
llvm::SmallVector<Value> emitDelinearize(mlir::OpBuilder &b, mlir::Location loc,
                                         Value position, ValueRange sizes);

/// for (i = from; i < to; i += step) body(i)
using LoopBody = llvm::function_ref<void(mlir::OpBuilder &, Value)>;
void emitLoop(mlir::OpBuilder &b, mlir::Location loc, Value from, Value to,
              int64_t step, LoopBody body);

} // namespace tcc::codegen

#endif // TCC_COMPILER_CODEGEN_REGION_ELEMENTEMITTER_H
