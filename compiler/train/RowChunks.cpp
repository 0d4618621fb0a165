#include "compiler/train/RowChunks.h"

#include "dialects/graph/interfaces/Gradients.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc::train {

namespace {

/// How an op reads an operand for one row of its result.
enum class Reading { row, all, otherwise };

} // namespace

static RankedTensorType getTensor(Value value) {
  return cast<RankedTensorType>(value.getType());
}

static int64_t getBits(Value value) {
  RankedTensorType type = getTensor(value);
  return type.getNumElements() * type.getElementTypeBitWidth();
}

static RankedTensorType withRows(RankedTensorType type, int64_t rows) {
  SmallVector<int64_t> shape(type.getShape());
  shape[0] = rows;
  return RankedTensorType::get(shape, type.getElementType());
}

static Reading getReading(IterationOpInterface op, unsigned operand) {
  AffineMap read = op.getOperandMap(operand);
  auto loop = dyn_cast<AffineDimExpr>(op.getResultMap(0).getResult(0));
  if (!read || !loop ||
      op.getLoopKinds()[loop.getPosition()] != utils::IteratorType::parallel)
    return Reading::otherwise;
  if (!read.isFunctionOfDim(loop.getPosition()))
    return Reading::all;
  auto others = read.getResults().drop_front();
  bool isOnlyFirst =
      read.getResult(0) == loop && llvm::none_of(others, [&](AffineExpr index) {
        return index.isFunctionOfDim(loop.getPosition());
      });
  return isOnlyFirst && getTensor(op->getOperand(operand)).getDimSize(0) ==
                            getTensor(op->getResult(0)).getDimSize(0)
             ? Reading::row
             : Reading::otherwise;
}

/// Adds the op that makes `value`, and those before it whose results are wide,
/// too; false if its rows are not made of rows.
bool RowTail::visit(Value value) {
  constexpr int64_t kNarrow = 4;
  Operation *op = value.getDefiningOp();
  auto iteration = dyn_cast_or_null<IterationOpInterface>(op);
  if (!iteration || op->getNumResults() != 1 || op->getNumOperands() == 0 ||
      !iteration.getResultMap(0))
    return false;
  for (OpOperand &operand : op->getOpOperands()) {
    Value read = operand.get();
    switch (getReading(iteration, operand.getOperandNumber())) {
    case Reading::otherwise:
      return false;
    case Reading::all:
      shared.insert(read);
      break;
    case Reading::row:
      if (getBits(read) * kNarrow <= getBits(wide))
        inputs.insert(read);
      else if (!visit(read))
        return false;
    }
  }
  ops.insert(op);
  return true;
}

std::optional<RowTail> RowTail::find(Value wide) {
  RankedTensorType type = getTensor(wide);
  RowTail tail;
  tail.wide = wide;
  if (type.getRank() < 2 || !type.hasStaticShape() || type.getDimSize(0) < 2 ||
      !tail.visit(wide) || tail.inputs.empty())
    return std::nullopt;
  // All of a value that is made by rows is never there.
  for (Value value : tail.shared)
    if (tail.ops.contains(value.getDefiningOp()))
      return std::nullopt;
  return tail;
}

int64_t RowTail::getRowCount() const { return getTensor(wide).getDimSize(0); }

/// More would save little, as other values are as large then, and each adds its
/// part to the gradients of shared values.
int64_t RowTail::getChunkCount() const {
  constexpr int64_t kMost = 8;
  return std::min(getRowCount(), kMost);
}

Value RowTail::emit(OpBuilder &builder, ArrayRef<Value> inputRows,
                    ArrayRef<Value> sharedValues) const {
  // A value may be read by rows and as a whole.
  DenseMap<Value, Value> rows, whole;
  for (auto [value, some] : llvm::zip_equal(inputs, inputRows))
    rows[value] = some;
  for (auto [value, all] : llvm::zip_equal(shared, sharedValues))
    whole[value] = all;
  int64_t count = getTensor(inputRows.front()).getDimSize(0);
  for (Operation *op : ops) {
    Operation *copy = builder.clone(*op);
    for (OpOperand &operand : op->getOpOperands()) {
      unsigned number = operand.getOperandNumber();
      bool readsRows =
          getReading(cast<IterationOpInterface>(op), number) == Reading::row;
      copy->setOperand(number, (readsRows ? rows : whole).at(operand.get()));
    }
    copy->getResult(0).setType(withRows(getTensor(op->getResult(0)), count));
    rows[op->getResult(0)] = copy->getResult(0);
  }
  return rows.at(wide);
}

Value emitSlice(const TensorEmitter &emitter, Value x, int64_t axis,
                int64_t start, int64_t count) {
  RankedTensorType type = getTensor(x);
  SmallVector<int64_t> shape(type.getShape()), steps(shape.size(), 1);
  SmallVector<AffineExpr> starts(shape.size(),
                                 emitter.builder.getAffineConstantExpr(0));
  shape[axis] = count;
  starts[axis] = emitter.builder.getAffineConstantExpr(start);
  return emitter.emit<SliceOp>(
      RankedTensorType::get(shape, type.getElementType()), x,
      makeSizeMap(starts, x.getContext()), steps);
}

namespace {

/// Emits one chunk after the other.
class ChunkEmitter {
public:
  ChunkEmitter(const Settings &settings, const LossRecipe &recipe,
               const LossOperands &operands, const RowTail &tail, Value scale,
               int64_t nominalCount);

  LogicalResult run();
  LossGradients finish();

private:
  LogicalResult emitChunk(int64_t start, int64_t count);
  void add(Value &sum, Value part) const {
    sum = sum && part ? emitter.emit<AddOp>(sum, part) : part ? part : sum;
  }
  Value slice(Value x, int64_t start, int64_t count) const {
    return x ? emitSlice(emitter, x, 0, start, count) : x;
  }

  const Settings &settings;
  const TensorEmitter &emitter;
  const LossRecipe &recipe;
  const LossOperands &operands;
  const RowTail &tail;
  Value scale;
  int64_t nominalCount;
  SmallVector<Value> shared; ///< stands for the tail's, and leads nowhere
  Loss loss;
  std::vector<SmallVector<Value>> rowGradients; ///< of each input its chunks'
  SmallVector<Value> sharedGradients;
};

} // namespace

ChunkEmitter::ChunkEmitter(const Settings &settings, const LossRecipe &recipe,
                           const LossOperands &operands, const RowTail &tail,
                           Value scale, int64_t nominalCount)
    : settings(settings), emitter(settings.getEmitter()), recipe(recipe),
      operands(operands), tail(tail), scale(scale), nominalCount(nominalCount),
      rowGradients(tail.getInputs().size()),
      sharedGradients(tail.getShared().size()) {
  loss.nominalCount = 0;
  for (Value value : tail.getShared())
    shared.push_back(getTensor(value).getRank() == 0
                         ? value
                         : slice(value, 0, getTensor(value).getDimSize(0)));
}

LogicalResult ChunkEmitter::emitChunk(int64_t start, int64_t count) {
  SmallVector<Value> leaves;
  for (Value input : tail.getInputs())
    leaves.push_back(slice(input, start, count));
  Value logits = tail.emit(emitter.builder, leaves, shared);
  Loss part = emitLoss(settings, recipe,
                       {logits, slice(operands.target, start, count),
                        slice(operands.weights, start, count)});
  Expr seed{emitter.castTo(scale, getTensor(part.total)), &emitter};
  seed = seed * (1.0 / double(nominalCount));
  llvm::append_range(leaves, shared);
  SmallVector<Value> gradients;
  if (failed(differentiate(emitter.builder, part.total, seed.value, leaves,
                           gradients)))
    return failure();
  for (auto [chunks, gradient] : llvm::zip(rowGradients, gradients))
    chunks.push_back(gradient);
  auto ofShared = ArrayRef(gradients).drop_front(rowGradients.size());
  for (auto [sum, gradient] : llvm::zip_equal(sharedGradients, ofShared))
    add(sum, gradient);
  add(loss.total, part.total);
  add(loss.count, part.count);
  add(loss.correct, part.correct);
  loss.nominalCount += part.nominalCount;
  return success();
}

LogicalResult ChunkEmitter::run() {
  int64_t rows = tail.getRowCount(), chunks = tail.getChunkCount();
  for (int64_t i = 0; i < chunks; ++i) {
    int64_t start = rows * i / chunks;
    if (failed(emitChunk(start, rows * (i + 1) / chunks - start)))
      return failure();
  }
  return success();
}

/// The gradients of whole values.
LossGradients ChunkEmitter::finish() {
  LossGradients result{loss, {}, {}};
  auto add = [&](Value value, Value gradient) {
    result.values.push_back(value);
    result.gradients.push_back(gradient);
  };
  for (auto [input, chunks] : llvm::zip_equal(tail.getInputs(), rowGradients))
    if (chunks.front())
      add(input,
          emitter.emit<ConcatOp>(getTensor(input), ValueRange(chunks), 0));
  for (auto [value, gradient] :
       llvm::zip_equal(tail.getShared(), sharedGradients))
    if (gradient)
      add(value, gradient);
  return result;
}

FailureOr<LossGradients> emitInChunks(const Settings &settings,
                                      const LossRecipe &recipe,
                                      const LossOperands &operands,
                                      const RowTail &tail, Value scale,
                                      int64_t nominalCount) {
  ChunkEmitter chunks(settings, recipe, operands, tail, scale, nominalCount);
  if (failed(chunks.run()))
    return failure();
  return chunks.finish();
}

} // namespace tcc::train
