#include "compiler/package/EntryBuilder.h"
#include "compiler/package/Enums.h"
#include "dialects/graph/NodeNames.h"
#include "dialects/graph/Shape.h"
#include "runtime/package/Names.h"

#include "llvm/ADT/TypeSwitch.h"

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

Offset<void> EntryBuilder::buildLaunch(exec::LaunchOp op) {
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
  return format::CreateLaunch(fbb, kernels.at(op.getKernelAttr().getAttr()),
                              buffersVector, sizesVector, tasks,
                              bool(op.getFault()), node, flops, bytes, nodes)
      .Union();
}

Offset<void> EntryBuilder::buildLoop(exec::LoopOp op) {
  auto trips = buildSize(op.getTrips());
  auto body = buildBlock(op.getBody().front());
  auto node = fbb.CreateString(op.getNode().str());
  int32_t condition = op.getCondition() ? getIndex(op.getCondition()) : -1;
  return format::CreateLoop(fbb, op.getSlot(), trips, condition,
                            op.getMaxTrips(), body, node)
      .Union();
}

Offset<void> EntryBuilder::buildReadSize(exec::ReadSizeOp op) {
  auto node = fbb.CreateString(op.getNode().str());
  return format::CreateReadSize(fbb, op.getSlot(), getIndex(op.getBuffer()),
                                getDType(op.getType()), op.getMin(),
                                op.getMax(), node)
      .Union();
}

Offset<void> EntryBuilder::buildAction(Operation &op, format::Action &type) {
  using format::Action;
  auto as = [&](Action action, Offset<void> offset) {
    type = action;
    return offset;
  };
  return llvm::TypeSwitch<Operation *, Offset<void>>(&op)
      .Case([&](exec::LaunchOp launch) {
        return as(Action::Launch, buildLaunch(launch));
      })
      .Case([&](exec::CopyOp copy) {
        auto bytes = buildSize(copy.getBytes());
        return as(Action::Copy,
                  format::CreateCopy(fbb, getIndex(copy.getFrom()),
                                     getIndex(copy.getTo()), bytes)
                      .Union());
      })
      .Case([&](exec::SetSizeOp set) {
        auto value = buildSize(set.getValue());
        return as(Action::SetSize,
                  format::CreateSetSize(fbb, set.getSlot(), value).Union());
      })
      .Case([&](exec::ReadSizeOp read) {
        return as(Action::ReadSize, buildReadSize(read));
      })
      .Case([&](exec::IfOp branch) {
        auto thenBlock = buildBlock(branch.getThenRegion().front());
        auto elseBlock = buildBlock(branch.getElseRegion().front());
        return as(Action::If,
                  format::CreateIf(fbb, getIndex(branch.getCondition()),
                                   thenBlock, elseBlock)
                      .Union());
      })
      .Case(
          [&](exec::LoopOp loop) { return as(Action::Loop, buildLoop(loop)); })
      .Case([&](exec::RecordEventOp event) {
        return as(Action::RecordEvent,
                  format::CreateRecordEvent(fbb, event.getEvent()).Union());
      })
      .Case([&](exec::WaitEventOp event) {
        return as(Action::WaitEvent,
                  format::CreateWaitEvent(fbb, event.getEvent()).Union());
      })
      .Case([&](exec::AllReduceOp reduce) {
        auto count = buildSize(reduce.getCount());
        return as(Action::AllReduce,
                  format::CreateAllReduce(fbb, getIndex(reduce.getBuffer()),
                                          getDType(reduce.getType()), count,
                                          toFormat(reduce.getKind()))
                      .Union());
      });
}

Offset<format::Block> EntryBuilder::buildBlock(Block &block) {
  std::vector<Offset<format::Command>> commands;
  for (Operation &op : block) {
    if (auto buffer = dyn_cast<exec::BufferOp>(op)) {
      addBuffer(buffer);
      continue;
    }
    if (auto view = dyn_cast<exec::ViewOp>(op)) {
      addView(view);
      continue;
    }
    format::Action type = format::Action::NONE;
    Offset<void> action = buildAction(op, type);
    uint16_t lane = 0;
    if (auto attr = op.getAttrOfType<IntegerAttr>("lane"))
      lane = attr.getInt();
    commands.push_back(format::CreateCommand(fbb, type, action, lane));
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
  auto kind = format::findEntryKind(entry.getSymName());
  assert(kind && "a module's functions are entry points");
  auto statesVector = fbb.CreateVector(states);
  auto buffersVector = fbb.CreateVector(buffers);
  return format::CreateEntry(
      fbb, *kind, /*variant=*/0, inputs, outputs, statesVector, buffersVector,
      body, entry.getSlots(), entry.getEvents(), entry.getLanes(),
      entry.getScratchBytes().value_or(0), entry.getScratchBound().value_or(0),
      entry.getWorkerBytes().value_or(0), space,
      entry.getWorkspaceBytes().value_or(0));
}

} // namespace tcc::package
