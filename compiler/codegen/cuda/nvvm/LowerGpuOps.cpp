#include "compiler/codegen/cuda/nvvm/LowerGpuOps.h"

#include "runtime/package/Format.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/FunctionImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using tcc::format::kWarpSize;

namespace {

/// Replaces one gpu op by ops of nvvm and arith.
class OpLowering {
public:
  explicit OpLowering(gpu::GPUFuncOp function)
      : b(function.getLoc(), function.getContext()) {}

  LogicalResult lower(Operation *op);

private:
  /// The register `XOp`: launches have one dimension.
  template <typename XOp>
  LogicalResult lowerIndex(Operation *op, gpu::Dimension dimension);
  LogicalResult lowerShuffle(gpu::ShuffleOp op);
  Value shuffleWord(Value word, Value mask);

  ImplicitLocOpBuilder b;
};

} // namespace

template <typename XOp>
LogicalResult OpLowering::lowerIndex(Operation *op, gpu::Dimension dimension) {
  if (dimension != gpu::Dimension::x)
    return op->emitError("launches have one dimension");
  Value index = b.create<XOp>(b.getI32Type());
  op->replaceAllUsesWith(ValueRange(
      b.create<arith::IndexCastUIOp>(b.getIndexType(), index).getResult()));
  op->erase();
  return success();
}

LogicalResult OpLowering::lower(Operation *op) {
  b.setInsertionPoint(op);
  b.setLoc(op->getLoc());
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](gpu::ThreadIdOp id) {
        return lowerIndex<NVVM::ThreadIdXOp>(id, id.getDimension());
      })
      .Case([&](gpu::BlockIdOp id) {
        return lowerIndex<NVVM::BlockIdXOp>(id, id.getDimension());
      })
      .Case([&](gpu::ShuffleOp shuffle) { return lowerShuffle(shuffle); })
      .Case([&](gpu::BarrierOp barrier) {
        b.create<NVVM::Barrier0Op>();
        barrier.erase();
        return success();
      })
      .Case([&](gpu::ReturnOp exit) {
        b.create<func::ReturnOp>(exit->getOperands());
        exit.erase();
        return success();
      })
      .Default([](Operation *other) {
        return other->emitError("has no lowering to nvvm");
      });
}

/// All lanes of a warp take part, and none reads beyond it.
Value OpLowering::shuffleWord(Value word, Value mask) {
  Value all = b.create<arith::ConstantIntOp>(-1, 32);
  Value lastLane = b.create<arith::ConstantIntOp>(kWarpSize - 1, 32);
  return b.create<NVVM::ShflOp>(word.getType(), all, word, mask, lastLane,
                                NVVM::ShflKind::bfly, UnitAttr());
}

/// Lowers a shuffle of 32 or 64 bits to shuffles of words.
LogicalResult OpLowering::lowerShuffle(gpu::ShuffleOp op) {
  Type type = op.getValue().getType(), i32 = b.getI32Type();
  unsigned bits = type.isIntOrFloat() ? type.getIntOrFloatBitWidth() : 0;
  APInt lanes;
  if (op.getMode() != gpu::ShuffleMode::XOR || !op.getValid().use_empty() ||
      !matchPattern(op.getWidth(), m_ConstantInt(&lanes)) ||
      lanes != kWarpSize || (bits != 32 && bits != 64))
    return op.emitError("has no lowering to nvvm");
  auto cast = [&](Value value, Type to) -> Value {
    return value.getType() == to ? value
                                 : b.create<arith::BitcastOp>(to, value);
  };
  Type whole = b.getIntegerType(bits);
  Value value = cast(op.getValue(), whole);
  Value low = bits == 32 ? value : b.create<arith::TruncIOp>(i32, value);
  Value result = shuffleWord(low, op.getOffset());
  if (bits == 64) {
    Value places = b.create<arith::ConstantIntOp>(32, whole);
    Value high = b.create<arith::ShRUIOp>(value, places);
    high = shuffleWord(b.create<arith::TruncIOp>(i32, high), op.getOffset());
    high =
        b.create<arith::ShLIOp>(b.create<arith::ExtUIOp>(whole, high), places);
    result =
        b.create<arith::OrIOp>(b.create<arith::ExtUIOp>(whole, result), high);
  }
  op.getShuffleResult().replaceAllUsesWith(cast(result, type));
  op.erase();
  return success();
}

namespace {

class LowerGpuOpsPass
    : public PassWrapper<LowerGpuOpsPass, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(LowerGpuOpsPass)

  StringRef getArgument() const final { return "tcc-lower-gpu-ops"; }
  StringRef getDescription() const final {
    return "lower the gpu dialect to func and nvvm";
  }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<arith::ArithDialect, func::FuncDialect, LLVM::LLVMDialect,
                    NVVM::NVVMDialect>();
  }

  void runOnOperation() final {
    auto modules = llvm::to_vector(getOperation().getOps<gpu::GPUModuleOp>());
    for (gpu::GPUModuleOp module : modules) {
      Block &body = *module.getBody();
      if (!body.empty() && isa<gpu::ModuleEndOp>(body.back()))
        body.back().erase();
      getOperation().getBody()->getOperations().splice(module->getIterator(),
                                                       body.getOperations());
      module.erase();
    }
    auto functions = llvm::to_vector(getOperation().getOps<gpu::GPUFuncOp>());
    for (gpu::GPUFuncOp function : functions)
      if (failed(lowerFunction(function)))
        return signalPassFailure();
  }

private:
  static LogicalResult lowerFunction(gpu::GPUFuncOp function);
};

} // namespace

LogicalResult LowerGpuOpsPass::lowerFunction(gpu::GPUFuncOp function) {
  if (function.getBody().getNumArguments() != function.getNumArguments())
    return function.emitError("shared and private memory are globals and "
                              "allocas here, not attributions");
  SmallVector<Operation *> ops;
  function.walk([&](Operation *op) {
    if (op != function && isa_and_present<gpu::GPUDialect>(op->getDialect()))
      ops.push_back(op);
  });
  OpLowering lowering(function);
  for (Operation *op : ops)
    if (failed(lowering.lower(op)))
      return failure();

  OpBuilder b(function);
  auto lowered = b.create<func::FuncOp>(
      function.getLoc(), function.getName(), function.getFunctionType(),
      function->getAttrOfType<StringAttr>("sym_visibility"),
      function.getArgAttrsAttr(), /*res_attrs=*/ArrayAttr());
  lowered.getBody().takeBody(function.getBody());
  if (function.isKernel())
    lowered->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(),
                     b.getUnitAttr());
  if (DenseI32ArrayAttr size = function.getKnownBlockSizeAttr())
    lowered->setAttr(NVVM::NVVMDialect::getMaxntidAttrName(), size);
  StringRef blocks = NVVM::NVVMDialect::getMinctasmAttrName();
  if (Attribute count = function->getAttr(blocks))
    lowered->setAttr(blocks, count);
  function.erase();
  return success();
}

std::unique_ptr<Pass> tcc::cuda::createLowerGpuOpsPass() {
  return std::make_unique<LowerGpuOpsPass>();
}
