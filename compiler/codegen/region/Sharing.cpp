//===- Sharing.cpp - Results in the buffers of inputs ---------------------===//

#include "compiler/codegen/region/Sharing.h"
#include "compiler/codegen/region/Buffer.h"
#include "compiler/codegen/region/RowPlan.h"

#include "llvm/ADT/DenseSet.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc::codegen {

namespace {

/// How the elements of a value are read while an element of a result is made.
enum class Place {
  Same,  ///< at the result's row-major position
  Row,   ///< once for a row of a row kernel
  Other, ///< anywhere
};

/// Looks for reads of an input at another position than the result's.
class ReadChecker {
public:
  ReadChecker(FusedOp fused, Value input)
      : kind(fused.getKind()), input(input) {}

  bool isOnlyReadInPlace(Value value, Place place);

private:
  bool visitOperands(Operation *op, Place place);
  /// The place of operand `i` of an op with loops of its own.
  Place getOperandPlace(Operation *op, unsigned i, Place place) const;

  KernelKind kind;
  Value input;
  llvm::DenseSet<std::pair<Value, int>> seen;
};

} // namespace

bool ReadChecker::isOnlyReadInPlace(Value value, Place place) {
  if (value == input)
    return place == Place::Same;
  Operation *op = value.getDefiningOp();
  if (!op || !seen.insert({value, int(place)}).second)
    return true;
  return visitOperands(op, place);
}

bool ReadChecker::visitOperands(Operation *op, Place place) {
  for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
    Place read = Place::Other;
    if (isa<PointwiseOpInterface, ReshapeOp>(op))
      read = place;
    else if (isa<KernelOpInterface>(op))
      read = getOperandPlace(op, i, place);
    else if (kind == KernelKind::row && isa<BroadcastOp>(op) &&
             place != Place::Other)
      read = Place::Row;
    if (!isOnlyReadInPlace(operand, read))
      return false;
  }
  return true;
}

Place ReadChecker::getOperandPlace(Operation *op, unsigned i,
                                   Place place) const {
  // A row is read before any of its results is written; a scatter starts from
  // a copy of its first operand; a scan reads an element before its result.
  bool isWalkedInPlace = kind == KernelKind::row || kind == KernelKind::scan ||
                         isa<ScatterOpInterface>(op);
  return isWalkedInPlace && i == 0 && place != Place::Other ? Place::Same
                                                            : Place::Other;
}

static bool haveEqualBytes(Value a, Value b) {
  return getStorageBytes(getElementTypeOrSelf(a)) ==
             getStorageBytes(getElementTypeOrSelf(b)) &&
         isEqual(getNumElements(getExtents(a), a.getContext()),
                 getNumElements(getExtents(b), b.getContext()));
}

/// Sums of columns of panels are stored once all rows of one are.
static bool isOfColumns(Value result) {
  while (auto reshape = result.getDefiningOp<ReshapeOp>())
    result = reshape.getX();
  Operation *op = result.getDefiningOp();
  return op && isOnePerRow(op) && !reducesLastAxis(op);
}

bool canShareBuffer(FusedOp fused, unsigned result, unsigned input) {
  Block &body = fused.getBody().front();
  Value argument = body.getArgument(input);
  OperandRange yields = body.getTerminator()->getOperands();
  if (!haveEqualBytes(yields[result], argument) || isOfColumns(yields[result]))
    return false;
  // A scatter builds its result in place, before anything else reads.
  bool isScatter = llvm::any_of(
      body, [](Operation &op) { return isa<ScatterOpInterface>(op); });
  if (isScatter &&
      !isa_and_present<ScatterOpInterface>(yields[result].getDefiningOp()))
    return false;
  ReadChecker checker(fused, argument);
  return llvm::all_of(yields, [&](Value yielded) {
    return checker.isOnlyReadInPlace(yielded, Place::Same);
  });
}

} // namespace tcc::codegen
