#include "dialects/graph/GraphOps.h"
#include "dialects/graph/evaluate/Evaluator.h"
#include "dialects/graph/evaluate/ScalarProgram.h"
#include "dialects/graph/ops/Scalar.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace tcc::graph;
using llvm::Error;
using llvm::Expected;

namespace tcc {

namespace {

/// A block that scalar IR is emitted into, outside of any function.
struct ScratchBlock {
  explicit ScratchBlock(MLIRContext *context) : builder(context) {
    region.push_back(new Block);
    builder.setInsertionPointToStart(&region.front());
  }
  Block &block() { return region.front(); }

  Region region;
  OpBuilder builder;
};

/// Gives elements of host tensors: each tensor is a buffer argument of the
/// scratch block.
class HostSource : public ElementSource {
public:
  using Lookup = llvm::function_ref<const HostTensor &(Value)>;

  using Size = llvm::function_ref<std::optional<int64_t>(AffineExpr)>;

  HostSource(Block &block, Lookup lookup, Size sizeOf)
      : block(block), lookup(lookup), sizeOf(sizeOf) {}

  Value element(OpBuilder &builder, Location loc, Value tensor,
                ValueRange indices) override {
    return builder.create<memref::LoadOp>(loc, getBuffer(tensor), indices);
  }

  Value size(OpBuilder &builder, Location loc, AffineExpr expression) override {
    std::optional<int64_t> value = sizeOf(expression);
    hasUnknownSize |= !value;
    return builder.create<arith::ConstantIndexOp>(loc, value.value_or(0));
  }

  Value checkedIndex(OpBuilder &builder, Location loc, Value index,
                     Value extent, bool wrapNegative) override {
    using P = arith::CmpIPredicate;
    Type type = builder.getIndexType();
    Value zero = builder.create<arith::ConstantIndexOp>(loc, 0);
    Value value = builder.create<arith::IndexCastOp>(loc, type, index);
    if (wrapNegative) {
      Value wrapped = builder.create<arith::AddIOp>(loc, value, extent);
      Value isNegative =
          builder.create<arith::CmpIOp>(loc, P::slt, value, zero);
      value = builder.create<arith::SelectOp>(loc, isNegative, wrapped, value);
    }
    Value low = builder.create<arith::CmpIOp>(loc, P::sge, value, zero);
    Value high = builder.create<arith::CmpIOp>(loc, P::slt, value, extent);
    builder.create<cf::AssertOp>(loc,
                                 builder.create<arith::AndIOp>(loc, low, high),
                                 "an index is out of range");
    return value;
  }

  ScalarProgram::Buffers buffers;
  bool hasUnknownSize = false;

private:
  Value getBuffer(Value tensor) {
    auto [entry, isNew] = arguments.try_emplace(tensor, Value());
    if (!isNew)
      return entry->second;
    auto type = cast<RankedTensorType>(tensor.getType());
    SmallVector<int64_t> shape(type.getRank(), ShapedType::kDynamic);
    Value buffer = block.addArgument(
        MemRefType::get(shape, getScalarType(type.getElementType())),
        tensor.getLoc());
    buffers[buffer] = &lookup(tensor);
    return entry->second = buffer;
  }

  Block &block;
  Lookup lookup;
  Size sizeOf;
  llvm::DenseMap<Value, Value> arguments;
};

} // namespace

Expected<Evaluator::Tensors> Evaluator::evaluatePointwise(Operation *op) {
  auto result = allocate(op->getResult(0));
  if (!result)
    return result.takeError();
  ScratchBlock scratch(op->getContext());
  SmallVector<const HostTensor *> operands;
  for (Value operand : op->getOperands()) {
    operands.push_back(&get(operand));
    scratch.block().addArgument(
        getScalarType(getElementTypeOrSelf(operand.getType())), op->getLoc());
  }
  Value body = cast<PointwiseOpInterface>(op).emitScalar(
      scratch.builder, op->getLoc(), scratch.block().getArguments());
  auto program = ScalarProgram::compile(scratch.block(), body);
  if (!program)
    return program.takeError();
  if (Error error = spend(result->elements.size(), program->size()))
    return std::move(error);
  SmallVector<Scalar> arguments(operands.size());
  for (size_t i = 0; i < result->elements.size(); ++i) {
    for (auto [argument, operand] : llvm::zip_equal(arguments, operands))
      argument = operand->elements[i];
    auto value = program->run(arguments);
    if (!value)
      return value.takeError();
    result->elements[i] =
        roundTo(result->type.getElementType(), value->front());
  }
  return makeTensors(std::move(*result));
}

Expected<Evaluator::Tensors> Evaluator::evaluateElements(Operation *op) {
  auto result = allocate(op->getResult(0));
  if (!result)
    return result.takeError();
  ScratchBlock scratch(op->getContext());
  SmallVector<Value> indices;
  for (int64_t i = 0; i < result->type.getRank(); ++i)
    indices.push_back(scratch.block().addArgument(
        scratch.builder.getIndexType(), op->getLoc()));
  auto lookup = [&](Value tensor) -> const HostTensor & { return get(tensor); };
  auto sizeOf = [&](AffineExpr size) -> std::optional<int64_t> {
    if (isKnown(size))
      return evaluateSize(size);
    return std::nullopt;
  };
  HostSource source(scratch.block(), lookup, sizeOf);
  Value body = cast<ElementOpInterface>(op).emitElement(
      scratch.builder, op->getLoc(), indices, source);
  if (source.hasUnknownSize)
    return llvm::createStringError("a symbol it depends on has no value");
  auto program = ScalarProgram::compile(scratch.block(), body, source.buffers);
  if (!program)
    return program.takeError();
  if (Error error = spend(result->elements.size(), program->size()))
    return std::move(error);
  size_t next = 0;
  SmallVector<Scalar> arguments(result->type.getRank());
  Error error =
      forEachIndex(result->shape(), [&](ArrayRef<int64_t> at) -> Error {
        for (auto [argument, index] : llvm::zip_equal(arguments, at))
          argument = {.i = index};
        auto value = program->run(arguments);
        if (!value)
          return value.takeError();
        result->elements[next++] =
            roundTo(result->type.getElementType(), value->front());
        return Error::success();
      });
  if (error)
    return std::move(error);
  return makeTensors(std::move(*result));
}

/// The neutral element of a reduction.
static Expected<Scalar> evaluateInit(ReductionOpInterface op) {
  ScratchBlock scratch(op->getContext());
  Value init = op.emitInit(scratch.builder, op->getLoc());
  auto program = ScalarProgram::compile(scratch.block(), init);
  if (!program)
    return program.takeError();
  auto value = program->run({});
  if (!value)
    return value.takeError();
  return value->front();
}

static Expected<ScalarProgram> compileCombine(ReductionOpInterface op) {
  ScratchBlock scratch(op->getContext());
  Type type = op.getAccumulatorType();
  Value lhs = scratch.block().addArgument(type, op->getLoc());
  Value rhs = scratch.block().addArgument(type, op->getLoc());
  Value combined = op.emitCombine(scratch.builder, op->getLoc(), lhs, rhs);
  return ScalarProgram::compile(scratch.block(), combined);
}

Expected<Evaluator::Tensors> Evaluator::evaluateReduction(Operation *op) {
  auto reduction = cast<ReductionOpInterface>(op);
  const HostTensor &x = get(op->getOperand(0));
  auto result = allocate(op->getResult(0));
  if (!result)
    return result.takeError();
  auto neutral = evaluateInit(reduction);
  if (!neutral)
    return neutral.takeError();
  auto combine = compileCombine(reduction);
  if (!combine)
    return combine.takeError();
  if (Error error = spend(x.elements.size(), combine->size()))
    return std::move(error);
  std::fill(result->elements.begin(), result->elements.end(), *neutral);
  SmallVector<int64_t> axes = reduction.getReducedAxes();
  size_t next = 0;
  Error error = forEachIndex(x.shape(), [&](ArrayRef<int64_t> at) -> Error {
    SmallVector<int64_t> kept;
    for (auto [axis, index] : llvm::enumerate(at))
      if (!llvm::is_contained(axes, int64_t(axis)))
        kept.push_back(index);
    Scalar &element = result->elements[result->offset(kept)];
    auto value = combine->run({element, x.elements[next++]});
    if (!value)
      return value.takeError();
    element = value->front();
    return Error::success();
  });
  if (error)
    return std::move(error);
  for (Scalar &element : result->elements)
    element = roundTo(result->type.getElementType(), element);
  return makeTensors(std::move(*result));
}

Expected<Evaluator::Tensors> Evaluator::evaluateDecomposed(Operation *op) {
  ScratchBlock scratch(op->getContext());
  auto results = cast<DecomposableOpInterface>(op).decompose(scratch.builder);
  if (failed(results))
    return llvm::createStringError("cannot be decomposed");
  if (depth == kMaxDepth)
    return llvm::createStringError("decompositions are nested too deeply");
  llvm::SaveAndRestore nested(depth, depth + 1);
  for (Operation &part : scratch.block())
    if (Error error = evaluateInto(&part))
      return std::move(error);
  Tensors tensors = getAll(*results);
  // Values of the scratch block die with it: their addresses may come again.
  for (Operation &part : scratch.block())
    for (Value value : part.getResults())
      values.erase(value);
  return tensors;
}

} // namespace tcc
