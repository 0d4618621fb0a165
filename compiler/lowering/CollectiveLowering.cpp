//===- CollectiveLowering.cpp - What ranks do together --------------------===//
//
// The variables of a bucket are views of one buffer, which one message moves.
// Which part of it is a rank's own follows from a size slot, which the runtime
// sets: a package is the same for all ranks.
//
//===----------------------------------------------------------------------===//
#include "compiler/lowering/EntryLowering.h"
#include "dialects/graph/NodeNames.h"

using namespace mlir;
using namespace tcc::exec;

namespace tcc::lowering {

/// A bucket, and the names of its variables.
struct EntryLowering::Members {
  graph::Bucket bucket;
  ArrayAttr names;
};

/// `more` is what the command has between its count and the group.
template <typename Start, typename... More>
void EntryLowering::createCollective(Operation *op, Value from, Value to,
                                     Type tensor, int64_t group, More... more) {
  auto type = cast<RankedTensorType>(tensor);
  AffineExpr count =
      graph::getNumElements(graph::getExtents(type), op->getContext());
  auto start = builder.create<Start>(
      op->getLoc(), TokenType::get(op->getContext()), from, to,
      type.getElementType(), graph::makeSizeMap(count, op->getContext()),
      more..., group, builder.getStringAttr(getNodeName(op)), /*lane=*/0);
  builder.create<WaitOp>(op->getLoc(), start.getToken());
}

void EntryLowering::createAllReduce(graph::AllReduceOp op, Value from, Value to,
                                    Type tensor) {
  createCollective<StartAllReduceOp>(op, from, to, tensor, op.getGroup(),
                                     op.getTree());
}

// --- Buckets -----------------------------------------------------------------

Value EntryLowering::createMember(const graph::Bucket &bucket, size_t index,
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

/// The bucket whose variables `names` are, in its order, with the types of
/// `tensors`.
FailureOr<EntryLowering::Members>
EntryLowering::findMembers(Operation *op, ArrayAttr names, ValueRange tensors) {
  auto first = cast<StringAttr>(names[0]);
  size_t place = graph::findVariable(variables, first);
  std::optional<graph::Bucket> bucket;
  if (place < variables.size())
    bucket = graph::findBucket(variables, place);
  if (!bucket)
    return op->emitOpError("variable ") << first << " is in no bucket";
  if (op->getBlock() != &function.getBody().front())
    return op->emitOpError("uses a bucket within a branch or loop");
  bool isBucket = names.size() == bucket->offsets.size();
  for (auto [i, name, tensor] :
       llvm::enumerate(names.getAsRange<StringAttr>(), tensors)) {
    size_t index = graph::findVariable(variables, name);
    isBucket &= index == bucket->first + i &&
                variables[index].getType() == tensor.getType();
  }
  if (!isBucket)
    return op->emitOpError(
        "expected the variables of one bucket, in its order");
  return Members{std::move(*bucket), names};
}

/// What was in the variables is not used any more, unless it is what goes into
/// the same one. `tensors` is empty for a gather, which computes what it gives
/// the variables where they lie.
LogicalResult EntryLowering::verifyChange(Operation *op, const Members &members,
                                          ValueRange tensors) {
  if (!changedBuckets.insert(members.bucket.first).second)
    return op->emitOpError("changes a bucket for a second time");
  for (auto [i, name] : llvm::enumerate(members.names.getAsRange<StringAttr>()))
    if (failed(verifyMember(op, name, tensors.empty() ? Value() : tensors[i])))
      return failure();
  return success();
}

/// `tensor` goes into the variable, which the function writes anew. Its old
/// value goes nowhere else, and is not used later.
LogicalResult EntryLowering::verifyMember(Operation *op, StringAttr name,
                                          Value tensor) {
  bool isWritten = false;
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    isWritten |=
        graph::getResultVariable(function, i) == name && !isUnchanged(i);
  if (!isWritten)
    return op->emitOpError("leaves what it makes in ") << name;
  for (BlockArgument argument : function.getArguments()) {
    if (graph::getArgVariable(function, argument.getArgNumber()) != name)
      continue;
    SmallVector<Value> values = {argument};
    for (size_t i = 0; i < values.size(); ++i)
      for (OpOperand &use : values[i].getUses()) {
        Operation *user = use.getOwner();
        if (isa<graph::ReshapeOp, graph::PartOp>(user))
          values.push_back(user->getResult(0));
        bool isOwn = user == op && (!tensor || tensor == argument);
        Operation *place = op->getBlock()->findAncestorOpInBlock(*user);
        if (!isOwn && !place->isBeforeInBlock(op))
          return op->emitOpError("the old value of ")
                 << name << " is used later";
      }
  }
  return success();
}

/// Each tensor is copied to its variable, unless what computes it may write
/// there (see UpdateVariables).
void EntryLowering::storeMembers(Operation *op, const Members &members,
                                 ValueRange tensors) {
  for (auto [name, tensor] :
       llvm::zip_equal(members.names.getAsRange<StringAttr>(), tensors)) {
    Value place = getVariableBuffer(name);
    if (getBuffer(tensor) != place)
      createCopy(op->getLoc(), getBuffer(tensor), place, tensor.getType());
  }
}

/// The view of the rank's own part of a bucket, which `part` is.
FailureOr<Value> EntryLowering::getOwnPart(Operation *op,
                                           const Members &members, Value part) {
  auto type = cast<RankedTensorType>(part.getType());
  int64_t bytes = graph::countBytes(type);
  int64_t ranks = graph::getRanks(op->getParentOfType<ModuleOp>());
  if (ranks < 1 || ranks * bytes != members.bucket.bytes)
    return op->emitOpError("has a part of ")
           << bytes << " bytes of a bucket of " << members.bucket.bytes
           << ", which " << ranks << " ranks divide";
  if (!rankSlot)
    rankSlot = slotCount++;
  Value &view = ownParts[members.bucket.first];
  if (!view) {
    OpBuilder::InsertionGuard guard(builder);
    (void)getVariableBuffer(cast<StringAttr>(members.names[0]));
    Value all = bucketBuffers[members.bucket.first];
    builder.setInsertionPointAfter(all.getDefiningOp());
    view = createView(function.getLoc(), all,
                      builder.getAffineSymbolExpr(*rankSlot) * bytes, type);
  }
  return view;
}

// --- Ops ---------------------------------------------------------------------

/// One message sums all tensors.
LogicalResult EntryLowering::lowerBucket(graph::AllReduceOp op) {
  auto members = findMembers(op, *op.getInto(), op.getTensors());
  if (failed(members) || failed(verifyChange(op, *members, op.getTensors())))
    return failure();
  storeMembers(op, *members, op.getTensors());
  for (auto [name, sum] :
       llvm::zip_equal(op.getInto()->getAsRange<StringAttr>(), op.getSums()))
    buffers[sum] = getVariableBuffer(name);
  Type element = getElementTypeOrSelf(op.getTensors().front());
  int64_t bytes = llvm::divideCeil(element.getIntOrFloatBitWidth(), 8);
  Value all = bucketBuffers[members->bucket.first];
  createAllReduce(
      op, all, all,
      RankedTensorType::get(members->bucket.bytes / bytes, element));
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

LogicalResult EntryLowering::lowerReduceScatter(graph::ReduceScatterOp op) {
  auto members = findMembers(op, op.getInto(), op.getTensors());
  if (failed(members) || failed(verifyChange(op, *members, op.getTensors())))
    return failure();
  FailureOr<Value> part = getOwnPart(op, *members, op.getPart());
  if (failed(part))
    return failure();
  storeMembers(op, *members, op.getTensors());
  buffers[op.getPart()] = *part;
  createCollective<StartReduceScatterOp>(
      op, bucketBuffers[members->bucket.first], *part, op.getPart().getType(),
      /*group=*/0);
  return success();
}

LogicalResult EntryLowering::lowerPart(graph::PartOp op) {
  auto members = findMembers(op, op.getOf(), op.getTensors());
  if (failed(members))
    return failure();
  for (auto [name, tensor] :
       llvm::zip_equal(op.getOf().getAsRange<StringAttr>(), op.getTensors()))
    if (getBuffer(tensor) != getVariableBuffer(name))
      return op.emitOpError(
                 "expected the value that the function was given of ")
             << name << ", or a sum that lies there";
  FailureOr<Value> part = getOwnPart(op, *members, op.getPart());
  if (failed(part))
    return failure();
  buffers[op.getPart()] = *part;
  return success();
}

LogicalResult EntryLowering::lowerAllGather(graph::AllGatherOp op) {
  auto members = findMembers(op, op.getInto(), op.getTensors());
  if (failed(members) || failed(verifyChange(op, *members, {})))
    return failure();
  FailureOr<Value> part = getOwnPart(op, *members, op.getPart());
  if (failed(part))
    return failure();
  if (getBuffer(op.getPart()) != *part)
    createCopy(op.getLoc(), getBuffer(op.getPart()), *part,
               op.getPart().getType());
  for (auto [name, tensor] :
       llvm::zip_equal(op.getInto().getAsRange<StringAttr>(), op.getTensors()))
    buffers[tensor] = getVariableBuffer(name);
  createCollective<StartAllGatherOp>(
      op, *part, bucketBuffers[members->bucket.first], op.getPart().getType(),
      /*group=*/0);
  return success();
}

bool EntryLowering::isGathered(unsigned position) {
  StringAttr name = graph::getResultVariable(function, position);
  Operation *yield = function.getBody().front().getTerminator();
  Value value = getSource(yield->getOperand(position));
  auto gather = value.getDefiningOp<graph::AllGatherOp>();
  return name && gather &&
         gather.getInto()[cast<OpResult>(value).getResultNumber()] == name;
}

} // namespace tcc::lowering
