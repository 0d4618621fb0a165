#include "compiler/codegen/cuda/LowerGpuOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Interfaces/FunctionImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace {

constexpr int32_t kWarpSize = 32;

/// Replaces one gpu op by ops of nvvm and arith.
class OpLowering {
public:
  explicit OpLowering(gpu::GPUFuncOp function)
      : b(function.getLoc(), function.getContext()),
        blockSize(function.getKnownBlockSize()) {}

  LogicalResult lower(Operation *op);

private:
  Value constant(int64_t value) {
    return b.create<arith::ConstantIntOp>(value, 32);
  }
  Value toIndex(Value i32) {
    return b.create<arith::IndexCastUIOp>(b.getIndexType(), i32);
  }
  /// The register `XOp`; launches have one dimension, the others are `other`.
  template <typename XOp> Value read(gpu::Dimension dimension, int64_t other) {
    if (dimension != gpu::Dimension::x)
      return b.create<arith::ConstantIndexOp>(other);
    return toIndex(b.create<XOp>(b.getI32Type()));
  }
  Value readBlockSize(gpu::Dimension dimension);
  Value lowerIndex(Operation *op);
  LogicalResult lowerShuffle(gpu::ShuffleOp op);
  /// Shuffles 32 bits; `isInside` is set if it is not null.
  Value shuffleWord(gpu::ShuffleOp op, Value word, Value *isInside);
  Value makeClamp(gpu::ShuffleOp op);

  ImplicitLocOpBuilder b;
  std::optional<ArrayRef<int32_t>> blockSize;
};

} // namespace

Value OpLowering::readBlockSize(gpu::Dimension dimension) {
  if (dimension == gpu::Dimension::x && blockSize)
    return b.create<arith::ConstantIndexOp>(blockSize->front());
  return read<NVVM::BlockDimXOp>(dimension, 1);
}

/// The value of an op that reads an index; null for others.
Value OpLowering::lowerIndex(Operation *op) {
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case([&](gpu::ThreadIdOp id) {
        return read<NVVM::ThreadIdXOp>(id.getDimension(), 0);
      })
      .Case([&](gpu::BlockIdOp id) {
        return read<NVVM::BlockIdXOp>(id.getDimension(), 0);
      })
      .Case([&](gpu::BlockDimOp size) {
        return readBlockSize(size.getDimension());
      })
      .Case([&](gpu::GridDimOp size) {
        return read<NVVM::GridDimXOp>(size.getDimension(), 1);
      })
      .Case([&](gpu::LaneIdOp) {
        return read<NVVM::LaneIdOp>(gpu::Dimension::x, 0);
      })
      .Default([](Operation *) { return Value(); });
}

LogicalResult OpLowering::lower(Operation *op) {
  b.setInsertionPoint(op);
  b.setLoc(op->getLoc());
  if (auto shuffle = dyn_cast<gpu::ShuffleOp>(op))
    return lowerShuffle(shuffle);
  if (isa<gpu::BarrierOp>(op)) {
    b.create<NVVM::Barrier0Op>();
  } else if (isa<gpu::ReturnOp>(op)) {
    b.create<func::ReturnOp>(op->getOperands());
  } else {
    Value index = lowerIndex(op);
    if (!index)
      return op->emitError("has no lowering to nvvm");
    op->replaceAllUsesWith(ValueRange(index));
  }
  op->erase();
  return success();
}

/// Bits 8 to 12 say which bits of a lane name its segment, 0 to 4 the last lane
/// of a segment, or for `up` the first one.
Value OpLowering::makeClamp(gpu::ShuffleOp op) {
  Value segment = b.create<arith::ShLIOp>(
      b.create<arith::SubIOp>(constant(kWarpSize), op.getWidth()), constant(8));
  if (op.getMode() == gpu::ShuffleMode::UP)
    return segment;
  return b.create<arith::OrIOp>(segment, constant(kWarpSize - 1));
}

static NVVM::ShflKind toShflKind(gpu::ShuffleMode mode) {
  switch (mode) {
  case gpu::ShuffleMode::UP:
    return NVVM::ShflKind::up;
  case gpu::ShuffleMode::DOWN:
    return NVVM::ShflKind::down;
  case gpu::ShuffleMode::XOR:
    return NVVM::ShflKind::bfly;
  case gpu::ShuffleMode::IDX:
    return NVVM::ShflKind::idx;
  }
  llvm_unreachable("all shuffle modes are listed");
}

Value OpLowering::shuffleWord(gpu::ShuffleOp op, Value word, Value *isInside) {
  Type type = word.getType();
  Type pair =
      LLVM::LLVMStructType::getLiteral(b.getContext(), {type, b.getI1Type()});
  auto shuffled = b.create<NVVM::ShflOp>(
      isInside ? pair : type, constant(-1), word, op.getOffset(), makeClamp(op),
      toShflKind(op.getMode()), isInside ? b.getUnitAttr() : UnitAttr());
  if (!isInside)
    return shuffled;
  *isInside = b.create<LLVM::ExtractValueOp>(shuffled, 1);
  return b.create<LLVM::ExtractValueOp>(shuffled, 0);
}

LogicalResult OpLowering::lowerShuffle(gpu::ShuffleOp op) {
  Value value = op.getValue();
  Type type = value.getType(), i32 = b.getI32Type();
  if (!type.isIntOrFloat() || type.getIntOrFloatBitWidth() > 64)
    return op.emitError("cannot shuffle ") << type;
  unsigned width = type.getIntOrFloatBitWidth();
  Value isInside;
  Value *wantsInside = op.getValid().use_empty() ? nullptr : &isInside;
  Value result;
  Type bits = b.getIntegerType(width);
  auto resize = [&](Value x, Type to) -> Value {
    if (x.getType() == to)
      return x;
    if (x.getType().getIntOrFloatBitWidth() < to.getIntOrFloatBitWidth())
      return b.create<arith::ExtUIOp>(to, x);
    return b.create<arith::TruncIOp>(to, x);
  };
  Value whole = type == bits ? value : b.create<arith::BitcastOp>(bits, value);
  Value low = shuffleWord(op, resize(whole, i32), wantsInside);
  result = resize(low, bits);
  if (width > 32) {
    Value places = b.create<arith::ConstantIntOp>(32, bits);
    Value high =
        b.create<arith::ShRUIOp>(resize(whole, b.getI64Type()), places);
    high = shuffleWord(op, resize(high, i32), nullptr);
    high = b.create<arith::ShLIOp>(resize(high, bits), places);
    result = b.create<arith::OrIOp>(result, high);
  }
  if (type != bits)
    result = b.create<arith::BitcastOp>(type, result);
  op.getShuffleResult().replaceAllUsesWith(result);
  if (isInside)
    op.getValid().replaceAllUsesWith(isInside);
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
