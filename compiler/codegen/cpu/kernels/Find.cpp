//===- Find.cpp - Positions of true elements ------------------------------===//
//
// One task. Each position is stored, and the next one over it unless its
// element is true: nothing depends on what the elements are like.
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cpu/kernels/IrregularEmitter.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace tcc::codegen;
using namespace tcc::graph;

namespace tcc::cpu {

TaskPlan planFind(FindOp op) {
  return {getAffineConstantExpr(1, op.getContext())};
}

/// Fills `target` until it is full or x ends; returns how many were found.
static Value emitSearch(KernelBuilder &b, KernelFrame &frame, FindOp op,
                        const Buffer &target, Value count) {
  Value extent = frame.size(b, getExtent(op.getX(), 0));
  Type index = b.getIndexType();
  auto loop = b.create<scf::WhileOp>(TypeRange{index, index},
                                     ValueRange{b.index(0), b.index(0)});
  OpBuilder::InsertionGuard guard(b);
  Block *before = b.createBlock(&loop.getBefore(), {}, {index, index},
                                {frame.loc, frame.loc});
  Value isLeft = b.less(before->getArgument(0), extent);
  Value hasRoom = b.less(before->getArgument(1), count);
  b.create<scf::ConditionOp>(b.create<arith::AndIOp>(isLeft, hasRoom),
                             before->getArguments());
  Block *after = b.createBlock(&loop.getAfter(), {}, {index, index},
                               {frame.loc, frame.loc});
  Value i = after->getArgument(0), found = after->getArgument(1);
  Value x = frame.elements.element(b, frame.loc, op.getX(), i);
  target.store(b, frame.loc, b.create<arith::IndexCastOp>(b.getI64Type(), i),
               found);
  Value one = b.create<arith::IndexCastUIOp>(index, x);
  b.create<scf::YieldOp>(ValueRange{b.add(i, b.index(1)), b.add(found, one)});
  return loop.getResult(1);
}

void emitFind(OpBuilder &builder, KernelFrame &frame, FindOp op) {
  emitLoop(builder, frame.loc, frame.firstTask, frame.lastTask, 1,
           [&](OpBuilder &inner, Value) {
             KernelBuilder b(frame.loc, inner);
             const Buffer &target = frame.results[0];
             Value count = frame.size(b, getExtent(op.getPositions(), 0));
             Value found = emitSearch(b, frame, op, target, count);
             b.loop(found, count, b.index(1), [&](Value place) {
               target.store(b, frame.loc, b.zero(b.getI64Type()), place);
             });
           });
}

} // namespace tcc::cpu
