#include "compiler/lowering/EntryLowering.h"

#include "dialects/graph/NodeNames.h"
#include "dialects/graph/Variables.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tcc::exec;

namespace tcc::lowering {

using graph::GraphDialect;

Value getSource(Value tensor) {
  while (auto reshape = tensor.getDefiningOp<graph::ReshapeOp>())
    tensor = reshape.getX();
  return tensor;
}

AffineExpr getByteSize(Type tensor) {
  auto type = cast<RankedTensorType>(tensor);
  constexpr unsigned kBitsPerByte = 8;
  int64_t bytes = llvm::divideCeil(
      type.getElementType().getIntOrFloatBitWidth(), kBitsPerByte);
  return graph::getNumElements(graph::getExtents(type), type.getContext()) *
         bytes;
}

/// For each value that `block` yields, the first result that it is: where an op
/// of the block may write it. A null result is not wanted.
static Destinations findDestinations(Block &block, ArrayRef<Value> results) {
  Destinations destinations;
  for (auto [yielded, result] :
       llvm::zip_equal(block.getTerminator()->getOperands(), results))
    if (result)
      destinations.try_emplace(getSource(yielded), result);
  return destinations;
}

EntryLowering::EntryLowering(func::FuncOp function, ProgramTables &tables)
    : function(function), tables(tables), space(tables.getSpace(function)),
      symbols(graph::getSymbols(function->getParentOfType<ModuleOp>())),
      builder(function),
      variables(graph::getVariables(function->getParentOfType<ModuleOp>())),
      slotCount(symbols.size()) {}

// --- Buffers -----------------------------------------------------------------

AffineMap EntryLowering::getByteMap(Type tensor) const {
  return graph::makeSizeMap(getByteSize(tensor), tensor.getContext());
}

int64_t EntryLowering::getByteBound(Type tensor) const {
  return graph::getRange(getByteSize(tensor), symbols).max;
}

Value EntryLowering::createBuffer(Location loc, StorageClass storage,
                                  std::optional<int64_t> index, Type tensor,
                                  bool isNext) {
  auto type = BufferType::get(function.getContext(), space);
  return builder.create<BufferOp>(
      loc, type, StorageClassAttr::get(function.getContext(), storage),
      index ? builder.getI64IntegerAttr(*index) : IntegerAttr(),
      AffineMapAttr::get(getByteMap(tensor)),
      builder.getI64IntegerAttr(getByteBound(tensor)), IntegerAttr(),
      isNext ? builder.getUnitAttr() : UnitAttr(), UnitAttr());
}

Value EntryLowering::createScratch(Location loc, int64_t bytes) {
  auto type = RankedTensorType::get(
      bytes, builder.getIntegerType(8, /*isSigned=*/false));
  return createBuffer(loc, StorageClass::scratch, std::nullopt, type);
}

Value EntryLowering::createView(Location loc, Value base, AffineExpr offset,
                                Type tensor) {
  // Not simplified: that would turn `mod` into more operations.
  auto map = AffineMap::get(0, slotCount, offset);
  return builder.create<ViewOp>(loc, base.getType(), base, map,
                                getByteMap(tensor), getByteBound(tensor));
}

Value EntryLowering::getConstantBuffer(Location loc, int64_t index,
                                       Type tensor) {
  Value &buffer = constantBuffers[index];
  if (buffer)
    return buffer;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&entry.getBody().front());
  return buffer = createBuffer(loc, StorageClass::constant, index, tensor);
}

Value EntryLowering::getDestination(Value tensor,
                                    const Destinations &destinations) {
  if (Value destination = destinations.lookup(tensor))
    return destination;
  return createBuffer(tensor.getLoc(), StorageClass::scratch, std::nullopt,
                      tensor.getType());
}

void EntryLowering::createCopy(Location loc, Value from, Value to,
                               Type tensor) {
  builder.create<CopyOp>(loc, from, to, getByteMap(tensor), /*lane=*/0);
}

// --- Ops ---------------------------------------------------------------------

void EntryLowering::lowerFused(graph::FusedOp op,
                               const Destinations &destinations) {
  SmallVector<Value> inputs, outputs;
  for (Value input : op.getInputs())
    inputs.push_back(getBuffer(input));
  for (Value result : op.getResults()) {
    buffers[result] = getDestination(result, destinations);
    outputs.push_back(buffers[result]);
  }
  KernelOp kernel = tables.createKernel(op, space);
  builder.create<LaunchOp>(
      op.getLoc(), kernel.getSymName(), inputs, outputs, /*fault=*/Value(),
      /*sizes=*/AffineMapAttr(), /*tasks=*/AffineMapAttr(), getNodeName(op),
      /*flops=*/AffineMapAttr(), /*bytes=*/AffineMapAttr(), /*lane=*/0);
}

void EntryLowering::createAllReduce(graph::AllReduceOp op, Value from, Value to,
                                    Type tensor) {
  auto type = cast<RankedTensorType>(tensor);
  AffineExpr count =
      graph::getNumElements(graph::getExtents(type), op.getContext());
  auto start = builder.create<StartAllReduceOp>(
      op.getLoc(), TokenType::get(op.getContext()), from, to,
      type.getElementType(), graph::makeSizeMap(count, op.getContext()),
      op.getTree(), op.getGroup(), builder.getStringAttr(getNodeName(op)),
      /*lane=*/0);
  builder.create<WaitOp>(op.getLoc(), start.getToken());
}

/// The variables are those of the bucket in its order, and what was in them is
/// not used any more, unless it is what goes into the same one.
LogicalResult EntryLowering::verifyBucket(graph::AllReduceOp op,
                                          const graph::Bucket &bucket) {
  if (op->getBlock() != &function.getBody().front())
    return op.emitOpError("sums variables within a branch or loop");
  if (!summedBuckets.insert(bucket.first).second)
    return op.emitOpError("sums a bucket for a second time");
  auto names = op.getInto()->getAsRange<StringAttr>();
  bool isBucket = op.getInto()->size() == bucket.offsets.size();
  for (auto [i, name, tensor] : llvm::enumerate(names, op.getTensors())) {
    size_t index = graph::findVariable(variables, name);
    isBucket &= index == bucket.first + i &&
                variables[index].getType() == tensor.getType();
  }
  if (!isBucket)
    return op.emitOpError("expected the variables of one bucket, in its order");
  for (auto [name, tensor] : llvm::zip_equal(names, op.getTensors()))
    if (failed(verifyPart(op, name, tensor)))
      return failure();
  return success();
}

/// `tensor` goes into the variable, which the function writes anew. Its old
/// value goes nowhere else, and is not used later.
LogicalResult EntryLowering::verifyPart(graph::AllReduceOp op, StringAttr name,
                                        Value tensor) {
  bool isWritten = false;
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    isWritten |=
        graph::getResultVariable(function, i) == name && !isUnchanged(i);
  if (!isWritten)
    return op.emitOpError("leaves the sum in ") << name;
  for (BlockArgument argument : function.getArguments()) {
    if (graph::getArgVariable(function, argument.getArgNumber()) != name)
      continue;
    SmallVector<Value> values = {argument};
    for (size_t i = 0; i < values.size(); ++i)
      for (OpOperand &use : values[i].getUses()) {
        Operation *user = use.getOwner();
        if (isa<graph::ReshapeOp>(user))
          values.push_back(user->getResult(0));
        bool isOwn = user == op && tensor == argument;
        Operation *place = op->getBlock()->findAncestorOpInBlock(*user);
        if (!isOwn && !place->isBeforeInBlock(op))
          return op.emitOpError("the old value of ")
                 << name << " is used later";
      }
  }
  return success();
}

/// Each tensor is copied to its variable, unless what computes it may write
/// there (see UpdateVariables), and one message sums them all.
LogicalResult EntryLowering::lowerBucket(graph::AllReduceOp op) {
  auto names = op.getInto()->getAsRange<StringAttr>();
  size_t first = graph::findVariable(variables, *names.begin());
  std::optional<graph::Bucket> bucket;
  if (first < variables.size())
    bucket = graph::findBucket(variables, first);
  if (!bucket)
    return op.emitOpError("variable ") << *names.begin() << " is in no bucket";
  if (failed(verifyBucket(op, *bucket)))
    return failure();
  for (auto [name, tensor, sum] :
       llvm::zip_equal(names, op.getTensors(), op.getSums())) {
    Value place = buffers[sum] = getVariableBuffer(name);
    if (getBuffer(tensor) != place)
      createCopy(op.getLoc(), getBuffer(tensor), place, tensor.getType());
  }
  Type element = getElementTypeOrSelf(op.getTensors().front());
  int64_t bytes = llvm::divideCeil(element.getIntOrFloatBitWidth(), 8);
  Value all = bucketBuffers[bucket->first];
  createAllReduce(op, all, all,
                  RankedTensorType::get(bucket->bytes / bytes, element));
  return success();
}

LogicalResult EntryLowering::lowerAllReduce(graph::AllReduceOp op,
                                            const Destinations &destinations) {
  if (op.getInto())
    return lowerBucket(op);
  for (auto [tensor, sum] : llvm::zip_equal(op.getTensors(), op.getSums())) {
    buffers[sum] = getDestination(sum, destinations);
    createAllReduce(op, getBuffer(tensor), buffers[sum], tensor.getType());
  }
  return success();
}

LogicalResult EntryLowering::lowerIf(graph::IfOp op,
                                     const Destinations &destinations) {
  SmallVector<Value> results;
  for (Value result : op.getResults()) {
    buffers[result] = getDestination(result, destinations);
    results.push_back(buffers[result]);
  }
  auto branch = builder.create<IfOp>(op.getLoc(), getBuffer(op.getCondition()));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&branch.getThenRegion().emplaceBlock());
  if (failed(lowerBlock(op.getThenRegion().front(), results)))
    return failure();
  builder.setInsertionPointToStart(&branch.getElseRegion().emplaceBlock());
  return lowerBlock(op.getElseRegion().front(), results);
}

LogicalResult EntryLowering::lowerOp(Operation &op,
                                     const Destinations &destinations) {
  return TypeSwitch<Operation *, LogicalResult>(&op)
      .Case([&](graph::FusedOp fused) {
        lowerFused(fused, destinations);
        return success();
      })
      .Case([&](graph::ReshapeOp reshape) {
        buffers[reshape] = getBuffer(reshape.getX());
        return success();
      })
      .Case([&](graph::ConstantOp constant) {
        buffers[constant] = getConstantBuffer(
            op.getLoc(), tables.getConstant(constant.getValue()),
            constant.getType());
        return success();
      })
      .Case([&](graph::WeightOp weight) {
        buffers[weight] = getConstantBuffer(
            op.getLoc(), tables.getConstant(weight.getName(), weight.getType()),
            weight.getType());
        return success();
      })
      .Case([&](graph::AllReduceOp reduce) {
        return lowerAllReduce(reduce, destinations);
      })
      .Case([&](graph::IfOp branch) { return lowerIf(branch, destinations); })
      .Case([&](graph::LoopOp loop) { return lowerLoop(loop, destinations); })
      .Default([&](Operation *other) {
        return other->emitOpError("of node '")
               << getNodeName(other) << "' has no lowering to exec";
      });
}

LogicalResult EntryLowering::lowerBlock(Block &block, ArrayRef<Value> results) {
  Destinations destinations = findDestinations(block, results);
  for (Operation &op : block.without_terminator())
    if (failed(lowerOp(op, destinations)))
      return failure();
  Operation *yield = block.getTerminator();
  for (auto [value, result] : llvm::zip_equal(yield->getOperands(), results))
    if (result && getBuffer(value) != result)
      createCopy(yield->getLoc(), getBuffer(value), result, value.getType());
  return success();
}

// --- The function ------------------------------------------------------------

static TensorAttr describe(StringAttr name, Type type, DictionaryAttr attrs) {
  ElementsAttr fixed;
  int64_t range[] = {0, -1};
  if (attrs) {
    fixed = attrs.getAs<ElementsAttr>("graph.fixed");
    if (auto indices = attrs.getAs<ArrayAttr>("graph.index_range"))
      for (auto [bound, attr] : llvm::zip(range, indices))
        bound = cast<IntegerAttr>(attr).getInt();
  }
  return TensorAttr::get(type.getContext(), name, cast<RankedTensorType>(type),
                         fixed, range[0], range[1]);
}

static StringAttr getName(DictionaryAttr attrs, StringRef otherwise,
                          Builder &builder) {
  auto name =
      attrs ? attrs.getAs<StringAttr>(GraphDialect::kNameAttr) : StringAttr();
  return name ? name : builder.getStringAttr(otherwise);
}

EntryOp EntryLowering::createEntry() {
  builder.setInsertionPointAfter(function);
  SmallVector<Attribute> inputs, outputs, states;
  for (auto [i, type] : llvm::enumerate(function.getArgumentTypes())) {
    if (graph::getArgVariable(function, i))
      continue;
    DictionaryAttr attrs = function.getArgAttrDict(i);
    inputs.push_back(describe(
        getName(attrs, ("input" + Twine(i)).str(), builder), type, attrs));
  }
  for (auto [i, type] : llvm::enumerate(function.getResultTypes())) {
    if (graph::getResultVariable(function, i))
      continue;
    DictionaryAttr attrs = function.getResultAttrDict(i);
    outputs.push_back(
        describe(getName(attrs, ("output" + Twine(i)).str(), builder), type,
                 DictionaryAttr()));
  }
  if (auto pairs = function->getAttrOfType<ArrayAttr>("graph.states"))
    for (Attribute pair : pairs) {
      auto positions = cast<ArrayAttr>(pair).getAsRange<IntegerAttr>();
      SmallVector<uint32_t> state;
      for (IntegerAttr position : positions)
        state.push_back(position.getInt());
      states.push_back(
          StateAttr::get(function.getContext(), state[0], state[1]));
    }
  return builder.create<EntryOp>(function.getLoc(), function.getSymNameAttr(),
                                 builder.getArrayAttr(inputs),
                                 builder.getArrayAttr(outputs),
                                 builder.getArrayAttr(states),
                                 /*slots=*/0, /*lanes=*/1, IntegerAttr(),
                                 IntegerAttr(), IntegerAttr(), IntegerAttr());
}

/// The state that has input (output) `position`, or nothing.
static std::optional<int64_t> findState(EntryOp entry, unsigned position,
                                        bool isOutput) {
  for (auto [i, attr] : llvm::enumerate(entry.getStates())) {
    auto state = cast<StateAttr>(attr);
    if ((isOutput ? state.getOutput() : state.getInput()) == position)
      return i;
  }
  return std::nullopt;
}

Value EntryLowering::createPart(const graph::Bucket &bucket, size_t index,
                                Type tensor) {
  OpBuilder::InsertionGuard guard(builder);
  Location loc = function.getLoc();
  Value &all = bucketBuffers[bucket.first];
  if (!all) {
    builder.setInsertionPointToStart(&entry.getBody().front());
    auto bytes = RankedTensorType::get(
        bucket.bytes, builder.getIntegerType(8, /*isSigned=*/false));
    all = createBuffer(loc, StorageClass::variable, bucket.first, bytes);
  }
  builder.setInsertionPointAfter(all.getDefiningOp());
  int64_t offset = bucket.offsets[index - bucket.first];
  return createView(loc, all, builder.getAffineConstantExpr(offset), tensor);
}

Value EntryLowering::getVariableBuffer(StringAttr name) {
  Value &buffer = variableBuffers[name];
  if (buffer)
    return buffer;
  size_t index = graph::findVariable(variables, name);
  Type type = variables[index].getType();
  if (auto bucket = graph::findBucket(variables, index))
    return buffer = createPart(*bucket, index, type);
  return buffer = createBuffer(function.getLoc(), StorageClass::variable, index,
                               type);
}

void EntryLowering::bindArguments() {
  for (BlockArgument argument : function.getArguments()) {
    unsigned position = argument.getArgNumber();
    if (StringAttr name = graph::getArgVariable(function, position)) {
      buffers[argument] = getVariableBuffer(name);
      continue;
    }
    auto state = findState(entry, position, /*isOutput=*/false);
    buffers[argument] = createBuffer(
        argument.getLoc(), state ? StorageClass::state : StorageClass::input,
        state ? *state : position, argument.getType());
  }
}

bool EntryLowering::isUnchanged(unsigned position) {
  Operation *yield = function.getBody().front().getTerminator();
  auto value = dyn_cast<BlockArgument>(yield->getOperand(position));
  StringAttr name = graph::getResultVariable(function, position);
  return name && value && value.getOwner() == &function.getBody().front() &&
         graph::getArgVariable(function, value.getArgNumber()) == name;
}

/// New values of variables are complete before the first is stored: any may be
/// computed from the old value of another.
Value EntryLowering::createResultBuffer(unsigned position) {
  if (isUnchanged(position))
    return Value();
  if (graph::getResultVariable(function, position))
    return createBuffer(function.getLoc(), StorageClass::scratch, std::nullopt,
                        function.getResultTypes()[position]);
  auto state = findState(entry, position, /*isOutput=*/true);
  return createBuffer(
      function.getLoc(), state ? StorageClass::state : StorageClass::output,
      state ? *state : position, function.getResultTypes()[position],
      /*isNext=*/state.has_value());
}

void EntryLowering::storeVariables(ArrayRef<Value> results) {
  for (auto [i, result] : llvm::enumerate(results)) {
    StringAttr name = graph::getResultVariable(function, i);
    if (name && result)
      createCopy(function.getLoc(), result, getVariableBuffer(name),
                 function.getResultTypes()[i]);
  }
}

LogicalResult EntryLowering::lower() {
  entry = createEntry();
  builder.setInsertionPointToStart(&entry.getBody().emplaceBlock());
  bindArguments();
  SmallVector<Value> results;
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    results.push_back(createResultBuffer(i));
  if (failed(lowerBlock(function.getBody().front(), results)))
    return failure();
  storeVariables(results);
  entry.setSlots(slotCount);
  return success();
}

} // namespace tcc::lowering
