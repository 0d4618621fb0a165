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
    : function(function), tables(tables), target(getTarget(function)),
      space(target.getSpace()),
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

/// The computed symbols that `op` uses, as sizes: it stays behind what sets
/// them even if no buffer depends on them.
static AffineMapAttr findComputed(graph::FusedOp op,
                                  ArrayRef<graph::SymbolAttr> symbols) {
  llvm::SmallSetVector<unsigned, 4> used;
  op->walk([&](Operation *nested) {
    for (unsigned symbol : graph::getUsedSymbols(nested))
      if (symbols[symbol].getIsComputed())
        used.insert(symbol);
  });
  SmallVector<AffineExpr> sizes;
  for (unsigned symbol : used)
    sizes.push_back(getAffineSymbolExpr(symbol, op.getContext()));
  return used.empty()
             ? AffineMapAttr()
             : AffineMapAttr::get(graph::makeSizeMap(sizes, op.getContext()));
}

void EntryLowering::lowerFused(graph::FusedOp op,
                               const Destinations &destinations) {
  SmallVector<Value> inputs, outputs;
  for (Value input : op.getInputs())
    inputs.push_back(getBuffer(input));
  for (Value result : op.getResults()) {
    buffers[result] = getDestination(result, destinations);
    outputs.push_back(buffers[result]);
  }
  KernelOp kernel = tables.createKernel(op, target);
  builder.create<LaunchOp>(
      op.getLoc(), kernel.getSymName(), inputs, outputs, /*fault=*/Value(),
      findComputed(op, symbols), /*tasks=*/AffineMapAttr(), getNodeName(op),
      /*flops=*/AffineMapAttr(), /*bytes=*/AffineMapAttr(),
      /*candidateTasks=*/AffineMapAttr(), /*bindings=*/AffineMapAttr(),
      /*lane=*/0);
}

void EntryLowering::lowerReadSize(graph::ReadSizeOp op) {
  unsigned symbol = op.getDefinedSymbols().front();
  builder.create<ReadSizeOp>(op.getLoc(), symbol, getBuffer(op.getSize()),
                             getElementTypeOrSelf(op.getSize()),
                             symbols[symbol].getMin(), symbols[symbol].getMax(),
                             getNodeName(op), op.getWhat(), /*lane=*/0);
}

void EntryLowering::setSizes(Operation *op, ArrayRef<graph::SetSize> set) {
  MLIRContext *context = op->getContext();
  auto create = [&](int64_t slot, AffineExpr value, unsigned symbol) {
    graph::SymbolAttr attr = symbols[symbol];
    builder.create<SetSizeOp>(
        op->getLoc(), slot, graph::makeSizeMap({value}, context), attr.getMin(),
        attr.getMax(), builder.getStringAttr(getNodeName(op)),
        builder.getStringAttr("size '" + attr.getName().getValue() + "'"),
        /*lane=*/0);
  };
  if (set.size() == 1)
    return create(set[0].symbol, set[0].value, set[0].symbol);
  // The value of one may depend on another: all are found before any is set.
  int64_t first = slotCount;
  slotCount += set.size();
  for (auto [i, one] : llvm::enumerate(set))
    create(first + i, one.value, one.symbol);
  for (auto [i, one] : llvm::enumerate(set))
    create(one.symbol, getAffineSymbolExpr(first + i, context), one.symbol);
}

void EntryLowering::setBranchSizes(graph::IfOp op, Block &branch) {
  TypeRange yielded = branch.getTerminator()->getOperandTypes();
  setSizes(op, graph::findSetSizes(op.getResultTypes(), yielded));
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
  setBranchSizes(op, op.getThenRegion().front());
  builder.setInsertionPointToStart(&branch.getElseRegion().emplaceBlock());
  if (failed(lowerBlock(op.getElseRegion().front(), results)))
    return failure();
  setBranchSizes(op, op.getElseRegion().front());
  return success();
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
      .Case([&](graph::ReduceScatterOp reduce) {
        return lowerReduceScatter(reduce);
      })
      .Case([&](graph::PartOp part) { return lowerPart(part); })
      .Case([&](graph::AllGatherOp gather) { return lowerAllGather(gather); })
      .Case([&](graph::ReadSizeOp read) {
        lowerReadSize(read);
        return success();
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
  return builder.create<EntryOp>(
      function.getLoc(), function.getSymNameAttr(),
      builder.getArrayAttr(inputs), builder.getArrayAttr(outputs),
      builder.getArrayAttr(states),
      /*slots=*/0, /*rank_slot=*/IntegerAttr(),
      /*lanes=*/1, IntegerAttr(), IntegerAttr(), IntegerAttr(), IntegerAttr());
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

Value EntryLowering::getVariableBuffer(StringAttr name) {
  Value &buffer = variableBuffers[name];
  if (buffer)
    return buffer;
  size_t index = graph::findVariable(variables, name);
  Type type = variables[index].getType();
  if (auto bucket = graph::findBucket(variables, index))
    return buffer = createMember(*bucket, index, type);
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
/// computed from the old value of another. Those that ranks gather lie where
/// they are to, and nothing uses what lay there before (verifyMember).
Value EntryLowering::createResultBuffer(unsigned position) {
  if (isUnchanged(position) || isGathered(position))
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
  entry.setRankSlot(rankSlot);
  return success();
}

} // namespace tcc::lowering
