//===- PackScalars.cpp - Let scalars of one launch share a line -----------===//
#include "compiler/passes/exec/Passes.h"
#include "compiler/passes/exec/memory/LiveRanges.h"
#include "compiler/target/Kernel.h"
#include "runtime/base/Alignment.h"

#include "mlir/IR/Builders.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace tcc::exec;

namespace tcc {

#define GEN_PASS_DEF_PACKSCALARSPASS
#include "compiler/passes/exec/Passes.h.inc"

namespace {

struct PackScalarsPass : impl::PackScalarsPassBase<PackScalarsPass> {
  void runOnOperation() override;
};

} // namespace

/// Between two scalars: their kernels may count on it.
static constexpr int64_t kStride = kMaxAccessBytes;
static_assert(kTensorAlignment % kStride == 0);

/// What the launch writes first of all commands, a stride of bytes at most.
static SmallVector<BufferOp> findScalars(LaunchOp launch,
                                         const LiveRanges &live) {
  llvm::SmallSetVector<BufferOp, 8> scalars;
  for (Value output : launch.getOutputs()) {
    auto buffer = output.getDefiningOp<BufferOp>();
    if (buffer && buffer->getBlock() == launch->getBlock() &&
        buffer.getStorage() == StorageClass::scratch &&
        buffer.getBound() <= kStride && live.isFirstUse(buffer, launch))
      scalars.insert(buffer);
  }
  return scalars.takeVector();
}

/// The last of them to be read takes a line anyway.
static void pack(ArrayRef<BufferOp> scalars) {
  BufferOp first = scalars.front();
  OpBuilder builder(first);
  builder.setInsertionPointToStart(first->getBlock());
  auto map = [&](int64_t value) {
    return AffineMap::get(/*dimCount=*/0, first.getBytes().getNumSymbols(),
                          builder.getAffineConstantExpr(value));
  };
  int64_t bytes = kStride * int64_t(scalars.size());
  auto line = builder.create<BufferOp>(
      first.getLoc(), first.getType(), first.getStorageAttr(), IntegerAttr(),
      AffineMapAttr::get(map(bytes)), builder.getI64IntegerAttr(bytes),
      IntegerAttr(), UnitAttr(), UnitAttr());
  for (auto [i, element] : llvm::enumerate(scalars)) {
    BufferOp scalar = element;
    auto view = builder.create<ViewOp>(scalar->getLoc(), scalar.getType(), line,
                                       map(kStride * int64_t(i)),
                                       scalar.getBytes(), scalar.getBound());
    scalar.replaceAllUsesWith(view.getResult());
  }
  // One of them may be where the builder inserts.
  for (BufferOp scalar : scalars)
    scalar.erase();
}

void PackScalarsPass::runOnOperation() {
  constexpr size_t kMost = kTensorAlignment / kStride;
  for (auto entry : getOperation().getOps<EntryOp>()) {
    LiveRanges live(entry);
    SmallVector<SmallVector<BufferOp>> lines;
    entry.walk([&](LaunchOp launch) {
      SmallVector<BufferOp> scalars = findScalars(launch, live);
      for (ArrayRef<BufferOp> rest = scalars; rest.size() > 1;
           rest = rest.drop_front(std::min(rest.size(), kMost)))
        lines.emplace_back(rest.take_front(kMost));
    });
    for (ArrayRef<BufferOp> line : lines)
      pack(line);
  }
}

} // namespace tcc
