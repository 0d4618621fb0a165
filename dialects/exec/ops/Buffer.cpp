#include "dialects/exec/ExecOps.h"
#include "dialects/graph/Variables.h"
#include "runtime/base/Alignment.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace tcc;
using namespace tcc::exec;

static ParseResult parseStorage(OpAsmParser &parser, StorageClassAttr &attr) {
  StringRef keyword;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&keyword))
    return failure();
  auto storage = symbolizeStorageClass(keyword);
  if (!storage)
    return parser.emitError(loc, "unknown storage class ") << keyword;
  attr = StorageClassAttr::get(parser.getContext(), *storage);
  return success();
}

static void printStorage(OpAsmPrinter &printer, Operation *,
                         StorageClassAttr attr) {
  printer << stringifyStorageClass(attr.getValue());
}

static bool hasIndex(StorageClass storage) {
  return storage != StorageClass::scratch && storage != StorageClass::fault;
}

/// The number of things that `index` may refer to; -1: not known here.
static int64_t getIndexLimit(BufferOp op, EntryOp entry) {
  switch (op.getStorage()) {
  case StorageClass::input:
    return entry.getInputs().size();
  case StorageClass::output:
    return entry.getOutputs().size();
  case StorageClass::state:
    return entry.getStates().size();
  case StorageClass::variable:
    return graph::getVariables(entry->getParentOfType<ModuleOp>()).size();
  default:
    return -1;
  }
}

LogicalResult BufferOp::verify() {
  auto entry = (*this)->getParentOfType<EntryOp>();
  if (!entry)
    return emitOpError("expected to lie in an entry point");
  if (!isSizeMap(getBytes(), 1) || getBound() < 0)
    return emitOpError("expected one size and its bound");
  if (hasIndex(getStorage()) != getIndex().has_value())
    return emitOpError("an index goes with storage that is listed elsewhere");
  int64_t limit = getIndexLimit(*this, entry);
  if (limit >= 0 && static_cast<int64_t>(*getIndex()) >= limit)
    return emitOpError("index ") << *getIndex() << " is not below " << limit;
  bool isState = getStorage() == StorageClass::state;
  if (!isState && (getNext() || getInPlace()))
    return emitOpError("only a state has a next value");
  if (!getOffset())
    return success();
  if (getStorage() != StorageClass::scratch)
    return emitOpError("only scratch has an offset");
  if (*getOffset() % kTensorAlignment)
    return emitOpError("offset ") << *getOffset() << " is not aligned";
  auto arena = entry.getScratchBytes();
  if (arena && *getOffset() + getBound() > *arena)
    return emitOpError("ends after the arena of ") << *arena << " bytes";
  return success();
}

LogicalResult ViewOp::verify() {
  if (!isSizeMap(getOffset(), 1) || !isSizeMap(getBytes(), 1))
    return emitOpError("expected one offset and one size");
  return success();
}

#define GET_OP_CLASSES
#include "dialects/exec/Buffer.cpp.inc"

void ExecDialect::addBufferOps() {
  addOperations<
#define GET_OP_LIST
#include "dialects/exec/Buffer.cpp.inc"
      >();
}
