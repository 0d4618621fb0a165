#include "compiler/package/EntryBuilder.h"
#include "compiler/package/Enums.h"
#include "dialects/exec/Commands.h"
#include "dialects/graph/NodeNames.h"
#include "dialects/graph/Phases.h"
#include "dialects/graph/Shape.h"
#include "runtime/package/Names.h"

using namespace mlir;

namespace tcc::package {

format::DType getDType(Type type) {
  using format::DType;
  if (type.isF64())
    return DType::f64;
  if (type.isF32())
    return DType::f32;
  if (type.isF16())
    return DType::f16;
  if (type.isBF16())
    return DType::bf16;
  bool isUnsigned = type.isUnsignedInteger();
  switch (type.getIntOrFloatBitWidth()) {
  case 1:
    return DType::boolean;
  case 8:
    return isUnsigned ? DType::u8 : DType::i8;
  case 16:
    return isUnsigned ? DType::u16 : DType::i16;
  case 32:
    return isUnsigned ? DType::u32 : DType::i32;
  default:
    return isUnsigned ? DType::u64 : DType::i64;
  }
}

static format::SizeOp getSizeOp(AffineExprKind kind) {
  switch (kind) {
  case AffineExprKind::Add:
    return format::SizeOp::add;
  case AffineExprKind::Mul:
    return format::SizeOp::mul;
  case AffineExprKind::FloorDiv:
    return format::SizeOp::floor_div;
  case AffineExprKind::CeilDiv:
    return format::SizeOp::ceil_div;
  case AffineExprKind::Mod:
    return format::SizeOp::mod;
  default:
    llvm_unreachable("not a binary expression of symbols");
  }
}

static void appendCode(AffineExpr expression,
                       std::vector<format::SizeInstruction> &code) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expression)) {
    code.emplace_back(format::SizeOp::constant, constant.getValue());
    return;
  }
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expression)) {
    code.emplace_back(format::SizeOp::slot, symbol.getPosition());
    return;
  }
  auto binary = cast<AffineBinaryOpExpr>(expression);
  appendCode(binary.getLHS(), code);
  appendCode(binary.getRHS(), code);
  code.emplace_back(getSizeOp(binary.getKind()), 0);
}

Offset<format::SizeExpr> buildSize(flatbuffers::FlatBufferBuilder &fbb,
                                   AffineExpr expression) {
  std::vector<format::SizeInstruction> code;
  appendCode(expression, code);
  return format::CreateSizeExpr(fbb, fbb.CreateVectorOfStructs(code));
}

std::vector<char> getBytes(ElementsAttr value) {
  auto dense = cast<DenseElementsAttr>(value);
  int64_t count = dense.getNumElements();
  if (dense.getElementType().isInteger(1)) {
    auto range = dense.getValues<bool>();
    return std::vector<char>(range.begin(), range.end());
  }
  ArrayRef<char> raw = dense.getRawData();
  if (!dense.isSplat())
    return std::vector<char>(raw.begin(), raw.end());
  std::vector<char> bytes;
  bytes.reserve(count * raw.size());
  for (int64_t i = 0; i < count; ++i)
    bytes.insert(bytes.end(), raw.begin(), raw.end());
  return bytes;
}

// --- Signature and buffers ---

Offset<format::TensorSpec> EntryBuilder::buildSpec(exec::TensorAttr tensor) {
  std::vector<Offset<format::SizeExpr>> shape;
  for (AffineExpr extent : graph::getExtents(tensor.getType()))
    shape.push_back(package::buildSize(fbb, extent));
  auto name = fbb.CreateString(tensor.getName().str());
  auto shapeVector = fbb.CreateVector(shape);
  Offset<flatbuffers::Vector<uint8_t>> fixed;
  if (tensor.getFixed()) {
    std::vector<char> bytes = getBytes(tensor.getFixed());
    fixed = fbb.CreateVector(reinterpret_cast<const uint8_t *>(bytes.data()),
                             bytes.size());
  }
  return format::CreateTensorSpec(
      fbb, name, getDType(tensor.getType().getElementType()), shapeVector,
      fixed, tensor.getIndexMin(), tensor.getIndexMax());
}

Offset<EntryBuilder::Specs> EntryBuilder::buildSpecs(ArrayAttr tensors) {
  std::vector<Offset<format::TensorSpec>> specs;
  for (Attribute tensor : tensors)
    specs.push_back(buildSpec(cast<exec::TensorAttr>(tensor)));
  return fbb.CreateVector(specs);
}

static format::MemorySpace getSpace(Value buffer) {
  return toFormat(cast<exec::BufferType>(buffer.getType()).getSpace());
}

void EntryBuilder::addBuffer(exec::BufferOp op) {
  indices[op.getResult()] = buffers.size();
  buffers.push_back(format::CreateBuffer(
      fbb, toFormat(op.getStorage()), getSpace(op), op.getIndex().value_or(0),
      op.getOffset().value_or(0), op.getBound(), op.getNext(),
      op.getInPlace()));
}

void EntryBuilder::addView(exec::ViewOp op) {
  indices[op.getResult()] = buffers.size();
  Offset<format::SizeExpr> offset = buildSize(op.getOffset());
  buffers.push_back(format::CreateBuffer(
      fbb, format::StorageClass::scratch, getSpace(op),
      /*index=*/0, /*offset=*/0, op.getBound(), /*next=*/false,
      /*in_place=*/false, getIndex(op.getBase()), offset));
}

// --- Commands ---

Offset<EntryBuilder::Candidates>
EntryBuilder::buildCandidates(exec::LaunchOp op) {
  if (!op.getCandidateTasks())
    return {};
  auto kernel = SymbolTable::lookupNearestSymbolFrom<exec::KernelOp>(
      op, op.getKernelAttr());
  std::vector<Offset<format::Candidate>> tables;
  for (auto [name, tasks] : llvm::zip_equal(
           kernel.getCandidatesAttr().getAsRange<FlatSymbolRefAttr>(),
           op.getCandidateTasks()->getResults()))
    tables.push_back(format::CreateCandidate(fbb, kernels.at(name.getAttr()),
                                             package::buildSize(fbb, tasks)));
  return fbb.CreateVector(tables);
}

EntryBuilder::Action EntryBuilder::buildLaunch(exec::LaunchOp op) {
  std::vector<uint32_t> operands;
  for (Value buffer : op.getInputs())
    operands.push_back(getIndex(buffer));
  for (Value buffer : op.getOutputs())
    operands.push_back(getIndex(buffer));
  if (op.getFault())
    operands.push_back(getIndex(op.getFault()));
  std::vector<Offset<format::SizeExpr>> sizes;
  if (op.getSizes())
    for (AffineExpr size : op.getSizes()->getResults())
      sizes.push_back(package::buildSize(fbb, size));
  auto buffersVector = fbb.CreateVector(operands);
  auto sizesVector = fbb.CreateVector(sizes);
  auto tasks = buildSize(op.getTasks());
  auto node = fbb.CreateString(op.getNode().str());
  auto flops = buildSize(op.getFlops()), bytes = buildSize(op.getBytes());
  std::vector<Offset<flatbuffers::String>> names;
  for (StringRef name : getNodeNames(op.getLoc()))
    names.push_back(fbb.CreateSharedString(name.data(), name.size()));
  auto nodes = fbb.CreateVector(names);
  auto candidates = buildCandidates(op);
  format::Phase phase = getPhase(op.getLoc()).value_or(format::Phase::forward);
  NodeOrigin origin = getOrigin(op.getLoc());
  auto share = [&](StringRef text) {
    return text.empty() ? Offset<flatbuffers::String>()
                        : fbb.CreateSharedString(text.data(), text.size());
  };
  auto operation = share(origin.op), module = share(origin.module);
  auto launch = format::CreateLaunch(
      fbb, kernels.at(op.getKernelAttr().getAttr()), buffersVector, sizesVector,
      tasks, bool(op.getFault()), node, flops, bytes, nodes, candidates, phase,
      operation, module);
  return {format::Action::Launch, launch.Union()};
}

EntryBuilder::Action EntryBuilder::buildCopy(Value from, Value to,
                                             AffineMap bytes) {
  auto size = buildSize(bytes);
  auto copy = format::CreateCopy(fbb, getIndex(from), getIndex(to), size);
  return {format::Action::Copy, copy.Union()};
}

EntryBuilder::Action EntryBuilder::buildIf(exec::IfOp op) {
  auto thenBlock = buildBlock(op.getThenRegion().front());
  auto elseBlock = buildBlock(op.getElseRegion().front());
  auto branch =
      format::CreateIf(fbb, getIndex(op.getCondition()), thenBlock, elseBlock);
  return {format::Action::If, branch.Union()};
}

EntryBuilder::Action EntryBuilder::buildLoop(exec::LoopOp op) {
  auto trips = buildSize(op.getTrips());
  auto body = buildBlock(op.getBody().front());
  auto node = fbb.CreateString(op.getNode().str());
  int32_t condition = op.getCondition() ? getIndex(op.getCondition()) : -1;
  auto loop = format::CreateLoop(fbb, op.getSlot(), trips, condition,
                                 op.getMaxTrips(), body, node);
  return {format::Action::Loop, loop.Union()};
}

EntryBuilder::Action EntryBuilder::buildSetSize(exec::SetSizeOp op) {
  auto value = buildSize(op.getValue());
  auto name = [&](std::optional<StringRef> text) {
    return text ? fbb.CreateString(text->str())
                : flatbuffers::Offset<flatbuffers::String>();
  };
  auto node = name(op.getNode()), what = name(op.getWhat());
  auto set = format::CreateSetSize(fbb, op.getSlot(), value, op.getMin(),
                                   op.getMax(), node, what);
  return {format::Action::SetSize, set.Union()};
}

EntryBuilder::Action EntryBuilder::buildReadSize(exec::ReadSizeOp op) {
  auto node = fbb.CreateString(op.getNode().str());
  auto what = fbb.CreateString(op.getWhat().str());
  auto read = format::CreateReadSize(
      fbb, op.getSlot(), getIndex(op.getBuffer()), getDType(op.getType()),
      op.getMin(), op.getMax(), node, what);
  return {format::Action::ReadSize, read.Union()};
}

EntryBuilder::Action EntryBuilder::buildRecord(Value token) {
  return {format::Action::RecordEvent,
          format::CreateRecordEvent(fbb, getEvent(token)).Union()};
}

/// What the runtime does on the command's lane.
struct EntryBuilder::ActionBuilder {
  using AnyAction = format::Action;

  EntryBuilder &builder;

  Action operator()(exec::LaunchOp op) const { return builder.buildLaunch(op); }
  Action operator()(exec::CopyOp op) const {
    return builder.buildCopy(op.getFrom(), op.getTo(), op.getBytes());
  }
  Action operator()(exec::StartCopyOp op) const {
    return builder.buildCopy(op.getFrom(), op.getTo(), op.getBytes());
  }
  Action operator()(exec::SetSizeOp op) const {
    return builder.buildSetSize(op);
  }
  Action operator()(exec::ReadSizeOp op) const {
    return builder.buildReadSize(op);
  }
  Action operator()(exec::IfOp op) const { return builder.buildIf(op); }
  Action operator()(exec::LoopOp op) const { return builder.buildLoop(op); }
  Action operator()(exec::RecordEventOp op) const {
    return builder.buildRecord(op.getToken());
  }
  Action operator()(exec::WaitOp op) const {
    uint32_t event = builder.getEvent(op.getToken());
    return {AnyAction::WaitEvent,
            format::CreateWaitEvent(builder.fbb, event).Union()};
  }
  Action operator()(exec::StartAllReduceOp op) const {
    using Table = format::AllReduce;
    return buildCollective<Table>(
        op, [&](Table::Builder &table) { table.add_tree(op.getTree()); });
  }
  Action operator()(exec::StartReduceScatterOp op) const {
    return buildCollective<format::ReduceScatter>(op);
  }
  Action operator()(exec::StartAllGatherOp op) const {
    return buildCollective<format::AllGather>(op);
  }

  Action operator()(exec::StartBroadcastOp op) const {
    using Table = format::Broadcast;
    return buildCollective<Table>(op, [&](Table::Builder &table) {
      table.add_root(uint32_t(op.getRoot()));
    });
  }

  template <typename Table, typename Op>
  Action buildCollective(
      Op op, llvm::function_ref<void(typename Table::Builder &)> addMore =
                 [](auto &) {}) const {
    auto count = builder.buildSize(op.getCount());
    flatbuffers::Offset<flatbuffers::String> node;
    if (auto name = op.getNode())
      node = builder.fbb.CreateString(name->str());
    typename Table::Builder table(builder.fbb);
    table.add_from(builder.getIndex(op.getFrom()));
    table.add_to(builder.getIndex(op.getTo()));
    table.add_dtype(getDType(op.getType()));
    table.add_count(count);
    table.add_group(uint32_t(op.getGroup()));
    if (!node.IsNull())
      table.add_node(node);
    addMore(table);
    return {format::ActionTraits<Table>::enum_value, table.Finish().Union()};
  }
};

/// Lanes are in order: they wait for events of other lanes only.
void EntryBuilder::addCommand(exec::CommandOpInterface op, Commands &commands) {
  auto add = [&](Action action) {
    commands.push_back(format::CreateCommand(fbb, action.type, action.table,
                                             uint16_t(op.getLane())));
  };
  auto wait = dyn_cast<exec::WaitOp>(*op);
  auto token = dyn_cast<exec::TokenOpInterface>(*op);
  bool isStart = exec::TokenOpInterface::isStart(op);
  bool joinsLanes =
      (wait && wait.joinsLanes()) || (token && token.joinsLanes());
  bool isMark = wait || (token && !isStart);
  if (!isMark || joinsLanes)
    add(exec::visitCommand(op, ActionBuilder{*this}));
  if (isStart && joinsLanes)
    add(buildRecord(token.getToken()));
}

Offset<format::Block> EntryBuilder::buildBlock(Block &block) {
  Commands commands;
  for (Operation &op : block) {
    if (auto buffer = dyn_cast<exec::BufferOp>(op))
      addBuffer(buffer);
    else if (auto view = dyn_cast<exec::ViewOp>(op))
      addView(view);
    else
      addCommand(cast<exec::CommandOpInterface>(op), commands);
  }
  return format::CreateBlock(fbb, fbb.CreateVector(commands));
}

Offset<format::Entry> EntryBuilder::build(exec::EntryOp entry) {
  auto body = buildBlock(entry.getBody().front());
  auto inputs = buildSpecs(entry.getInputs());
  auto outputs = buildSpecs(entry.getOutputs());
  std::vector<Offset<format::StatePair>> states;
  for (Attribute attr : entry.getStates()) {
    auto state = cast<exec::StateAttr>(attr);
    states.push_back(
        format::CreateStatePair(fbb, state.getInput(), state.getOutput()));
  }
  auto space = format::MemorySpace::host;
  for (auto buffer : entry.getOps<exec::BufferOp>())
    space = getSpace(buffer); // all of them lie in one
  auto name = format::parseEntryName(entry.getSymName());
  assert(name && "a module's functions are entry points");
  auto statesVector = fbb.CreateVector(states);
  auto buffersVector = fbb.CreateVector(buffers);
  return format::CreateEntry(
      fbb, name->kind, name->variant, inputs, outputs, statesVector,
      buffersVector, body, entry.getSlots(), events.size(), entry.getLanes(),
      entry.getScratchBytes().value_or(0), entry.getScratchBound().value_or(0),
      entry.getWorkerBytes().value_or(0), space,
      entry.getWorkspaceBytes().value_or(0), entry.getRankSlot().value_or(-1));
}

} // namespace tcc::package
